"""Chinese for errors: what other packages and click say in English when a command cannot go on.

An error that is not in this table stays English. The parts that vary stand in braces.
"""

__all__ = ["ERRORS", "FOREIGN"]

#: What a file or a conversation lacks.
_FILES = (
    ("{a}: a folder, not a file", "{a}：是文件夹，不是文件"),
    ("{a}: a pipe or a device, not a file (- reads standard input)", "{a}：是管道或设备，不是文件（- 表示读标准输入）"),
    ("{a}: larger than {b} MB; split it", "{a}：超过 {b} MB，请拆分"),
    ("standard input is larger than {a} MB: split it", "标准输入超过 {a} MB，请拆分"),
    ("{a} is a folder, not a file", "{a} 是文件夹，不是文件"),
    ("{a}: no such folder", "{a}：没有这个文件夹"),
    ("{a}: the file is empty", "{a}：文件是空的"),
    ("{a}: it contains no JSON: {b}", "{a}：其中没有 JSON（{b}）"),
    ("{a}: damaged gzip file: {b}", "{a}：gzip 文件已损坏（{b}）"),
    (
        "{a}: not a conversation: an object with {b}; expected {c}",
        "{a}：不是对话：对象的字段是 {b}，应有 {c}",
    ),
    ("{a}: not a conversation: {b}", "{a}：不是对话（{b}）"),
    ("{a}: no conversation {b}: the file holds {c}", "{a}：没有对话 {b}；文件中共有 {c} 个"),
    ("{a}: {b} matches {c} conversations: {d}; give more of the id", "{a}：{b} 对应 {c} 个对话：{d}；请多写几位 id"),
    ("--html: {a} does not end in .html", "--html：{a} 不以 .html 结尾"),
)

#: What is wrong with an option or a setting.
_SETTINGS = (
    ("{a}: unknown preset {b}; the presets are {c}", "{a}：未知预设 {b}；可选：{c}"),
    ("unknown preset {a}; the presets are {b}", "未知预设 {a}；可选：{b}"),
    ("--preset: {a}: module {b} has no attribute {c}", "--preset：{a}：模块 {b} 中没有 {c}"),
    ("--preset: {a} is of type {b}, not a Preset", "--preset：{a} 是 {b}，不是 Preset"),
    ("--preset: {a}: {b} cannot be imported: {c}", "--preset：{a}：无法导入 {b}：{c}"),
    ("{a}: {b} must be one of {c}, not {d}", "{a}：{b} 只能是 {c}，不能是 {d}"),
    ("{a}: {b} must be an integer, not {c}", "{a}：{b} 应为整数，不能是 {c}"),
    ("{a}: {b} must be a number, not {c}", "{a}：{b} 应为数字，不能是 {c}"),
    ("{a}: unknown setting: {b}", "{a}：未知设置 {b}"),
    (
        "EVERLONG_WINDOW: the demo needs a window of at least {a} tokens",
        "EVERLONG_WINDOW：演示需要至少 {a} token 的窗口",
    ),
    ("--workspace: {a} is not a folder", "--workspace：{a} 不是文件夹"),
    ("--local and --upstream contradict each other: use one of them", "--local 与 --upstream 只能用一个"),
    (
        "--continue, --thread and --sample contradict each other: use one of them",
        "--continue、--thread、--sample 只能用一个",
    ),
    (
        "--sandbox {a} and --no-sandbox contradict each other: use one of them",
        "--sandbox {a} 与 --no-sandbox 只能用一个",
    ),
)

#: What a model, a server or a store does not do.
_SERVERS = (
    (
        "unknown provider {a}; did you mean {b}?; an address starts with https://",
        "未知提供商 {a}；是不是 {b}？地址要以 https:// 开头",
    ),
    ("unknown provider {a}; an address starts with https://", "未知提供商 {a}；地址要以 https:// 开头"),
    ("{a} cannot be reached: {b}", "无法连接 {a}：{b}"),
    ("there is no session {a}: `everlong sessions list` shows all", "没有会话 {a}；everlong sessions list 列出全部"),
    (
        "no such model file: {a}; give --local a GGUF file, or nothing to use a small model",
        "没有模型文件 {a}；--local 后面写 GGUF 文件，不写则用小模型",
    ),
    ("the local model cannot be downloaded: {a}", "无法下载本机模型：{a}"),
    ("no model named: give its name, such as gpt-4o", "没有写模型名；例如 gpt-4o"),
    ("{a} cannot be started: {b}", "无法启动 {a}：{b}"),
    (
        "{a}: no gateway answers at {b}; start it, or unset the variable",
        "{a}：{b} 没有网关响应；请启动网关，或取消该变量",
    ),
    ("{a} must be an address, such as {b}", "{a} 应为地址，例如 {b}"),
    ("{a} needs more packages ({b}): {c}", "缺少软件包（{b}；用于 {a}），请运行：{c}"),
    ("{a} is not a store: use {b}", "{a} 不是存储；可用：{b}"),
)

#: Sentences of the system, of Python and of click.
FOREIGN = (
    ("{a}: No such file or directory", "{a}：没有这个文件或文件夹"),
    ("{a}: Permission denied", "{a}：没有权限"),
    ("--preset: {a}: No module named {b}", "--preset：{a}：没有模块 {b}"),
    ("name a FILE (or - for standard input), or use --sample", "请写上 FILE（- 表示标准输入），或用 --sample"),
    ("no such option {a}; did you mean {b}?", "没有选项 {a}；是不是 {b}？"),
    ("no such option {a}", "没有选项 {a}"),
    ("no such command {a}; did you mean {b}?", "没有命令 {a}；是不是 {b}？"),
    ("no such command {a}", "没有命令 {a}"),
    ("option {a} requires an argument", "选项 {a} 后面要有值"),
    ("got unexpected extra argument ({a})", "多出一个参数：{a}"),
    ("got unexpected extra arguments ({a})", "多出几个参数：{a}"),
    ("missing argument {a}", "缺少参数 {a}"),
    ("invalid value for {a}: {b} is not one of {c}; did you mean {d}?", "{a} 不能是 {b}，可选：{c}；是不是 {d}？"),
    ("invalid value for {a}: {b} is not one of {c}", "{a} 不能是 {b}，可选：{c}"),
    (
        "invalid value for {a}: {b} is not a number of tokens; write it as 200000, 200k or 1.5M",
        "{a}：{b} 不是 token 数；可写作 200000、200k 或 1.5M",
    ),
    ("invalid value for {a}: {b} is less than {c}", "{a}：{b} 小于 {c}"),
    ("invalid value for {a}: {b} is not a whole number", "{a}：{b} 不是整数"),
)

ERRORS: tuple[tuple[str, str], ...] = (*_FILES, *_SETTINGS, *_SERVERS, *FOREIGN)
