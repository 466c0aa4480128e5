/** Small pieces of HTML. Pure. */

/** Text as HTML that shows just this text.  "<b>" -> "&lt;b&gt;" */
export function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

/** A link to another site, which learns nothing of this one. */
export function linkHtml(href: string, inner: string): string {
  const address = escapeHtml(href);
  return `<a href="${address}" title="${address}" target="_blank" rel="noopener noreferrer">${inner}</a>`;
}

/** A formula before it is drawn: its source, which stays if drawing fails. */
export function formulaHtml(raw: string, display: boolean): string {
  return `<span class="maths${display ? " display" : ""}">${escapeHtml(raw)}</span>`;
}
