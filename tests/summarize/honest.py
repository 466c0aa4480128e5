"""Two small conversations and what honest models might write about them, well and clumsily. None of it is false."""

import json

from everlong.core import History
from everlong.tokens import Counter
from tests.core.build import assistant, calls, result, system, user

COUNTER = Counter("gpt-4o")

LISTING = "\n".join(f"src/shop/part_{number}.py  {number * 137} bytes" for number in range(60))

ENGLISH: History = (
    system("You are a careful coding assistant."),
    user("The login page returns 500 since yesterday. Find out why. Never delete anything in the orders table."),
    calls("1", name="read_file", arguments=json.dumps({"path": "src/shop/login.py"})),
    result("1", "def check_token(token):\n    return cache[token]  # KeyError after restart\n" + LISTING),
    assistant("The cache is empty after a restart: check_token raises KeyError. I suggest a fallback to the database."),
    user("ok, go ahead with the fallback"),
    calls(
        "2", name="edit_file", arguments=json.dumps({"path": "src/shop/login.py", "content": "use session_store.get"})
    ),
    result("2", "ok"),
    calls("3", name="run", arguments=json.dumps({"command": "pytest tests/test_login.py"})),
    result("3", "41 passed, 1 failed: test_expired_token (timeout after 2500 ms)\n" + LISTING),
    assistant(
        "41 tests pass; test_expired_token times out after 2500 ms. The commit would be a1b2c3d4. Should I deploy to"
        " staging at https://staging.shop.example/login?"
    ),
    user("Not yet. First fix test_expired_token, and remove the old debug prints. I prefer small commits."),
    assistant(
        "Understood: test_expired_token first, then the debug prints, no deployment. Budget is 30,000 requests a day."
    ),
)

CHINESE: History = (
    user("登录页面从昨天开始返回 500，请查明原因。不要删除订单表里的任何数据。"),
    calls("1", name="read_file", arguments=json.dumps({"path": "src/shop/login.py"})),
    result("1", "def check_token(token):\n    return cache[token]  # KeyError after restart\n" + LISTING),
    assistant("重启后缓存是空的，所以 check_token 抛出 KeyError。我建议在缓存没有命中时回退到数据库查询。"),
    user("可以，就这么改"),
    calls(
        "2", name="edit_file", arguments=json.dumps({"path": "src/shop/login.py", "content": "use session_store.get"})
    ),
    result("2", "ok"),
    calls("3", name="run", arguments=json.dumps({"command": "pytest tests/test_login.py"})),
    result("3", "41 passed, 1 failed: test_expired_token (timeout after 2500 ms)\n" + LISTING),
    assistant("41 个测试通过，test_expired_token 在 2500 毫秒后超时。要部署到测试环境吗？"),
    user("先不要。先修复 test_expired_token，再把旧的调试输出去掉。提交尽量小一些。"),
    assistant("明白：先修 test_expired_token，然后清理调试输出，暂不部署。每天限额 3 万次请求。"),
)

HONEST_ENGLISH = (
    "The login page returned 500 because the cache was empty after a restart; check_token raised KeyError.",
    "The user asked to find out why the login page returns 500 and to never delete anything in the orders table.",
    "The user approved the fallback to the database.",
    "A fallback through session_store.get is in src/shop/login.py. 41 tests pass, test_expired_token times out.",
    "Next: fix test_expired_token, then remove the old debug prints. The user does not want a deployment yet.",
    "The user prefers small commits. Staging is at https://staging.shop.example/login.",
    "Deployment to staging waits until the user confirms it. It has not been approved.",
    "Decided to fall back to the database when the token is not in the cache, e.g. after a restart.",
    "The user wants test_expired_token fixed first, then the old debug prints removed.",
    "Error in login.py: KeyError in check_token. Timeout 2500 ms. Daily budget: 30k requests (30,000).",
    "`login.py` now reads from `session_store`; the read/write path is otherwise unchanged.",
    "## Done\n- found the cause of the 500 on the login page\n- added the fallback in src/shop/login.py\n"
    "## Next\n- fix test_expired_token (times out after 2500 ms)\n- remove the old debug prints",
    '{"context": "Login page fails with 500 after restarts.", "decisions": ["fall back to the database"],'
    ' "constraints": ["never delete anything in the orders table", "small commits"], "open_questions":'
    ' ["when to deploy to staging"], "file_changes": ["src/shop/login.py: session_store fallback"]}',
)

HONEST_CHINESE = (
    "登录页面返回 500，原因是重启后缓存为空，check_token 抛出 KeyError。",
    "用户要求查明登录页面返回 500 的原因，并且不要删除订单表里的任何数据。",
    "用户同意在缓存没有命中时回退到数据库查询。",
    "已修改 src/shop/login.py，改用 session_store.get；41 个测试通过，test_expired_token 仍然超时（2500 毫秒）。",
    "下一步：修复 test_expired_token，然后去掉旧的调试输出。用户暂时不想部署。",
    "是否部署到测试环境，等待用户确认。提交要尽量小。",
    "每天限额 30000 次请求。",
    "## 决定\n- 缓存没有命中时回退到数据库\n## 约束\n- 不要删除订单表里的数据\n- 提交尽量小\n"
    "## 下一步\n- 修复 test_expired_token",
    '```json\n{"context": "登录页面重启后返回 500。", "done": ["找到原因：缓存为空", "修改 src/shop/login.py"],'
    ' "next": ["修复 test_expired_token", "去掉旧的调试输出"], "open_questions": ["何时部署到测试环境"]}\n```',
)
