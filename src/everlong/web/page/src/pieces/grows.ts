/** Make a text area grow with its text, if the browser cannot do so by itself (`field-sizing`). */
export function grows(area: HTMLTextAreaElement, _text: string): { update?: () => void } {
  if (CSS.supports("field-sizing", "content")) return {};
  const fit = () => {
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight}px`;
  };
  requestAnimationFrame(fit);
  return { update: fit };
}
