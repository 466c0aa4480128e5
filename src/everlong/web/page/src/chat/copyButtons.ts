/** Copy buttons for code that stands inside other markdown (in a list, in a quote). */
import { copyText } from "../pieces/clipboard";
import { t } from "../words";

const TOLD_FOR = 1_500; // milliseconds

function button(code: HTMLElement): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "copy-inner";
  made.textContent = t("chat.copy");
  made.onclick = async () => {
    if (!(await copyText(code.textContent ?? ""))) return;
    made.textContent = t("chat.copied");
    setTimeout(() => (made.textContent = t("chat.copy")), TOLD_FOR);
  };
  return made;
}

/** To be used on the element that holds the HTML; `html` tells when it was replaced. */
export function copyButtons(block: HTMLElement, _html: string): { update: () => void } {
  const add = () => {
    for (const code of block.querySelectorAll<HTMLElement>("pre > code")) {
      if (!code.parentElement?.querySelector(".copy-inner")) code.parentElement?.append(button(code));
    }
  };
  add();
  return { update: add };
}
