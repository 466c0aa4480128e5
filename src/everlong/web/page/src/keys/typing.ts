/** What the Enter key does here, and on what kind of keyboard. */

/** Whether this is a Mac, where Alt and Ctrl have other names and uses. */
export function isMac(): boolean {
  return /mac|iphone|ipad/i.test(navigator.platform);
}

/** Whether Enter sends. On a phone, Enter makes a new line, and the button sends. */
export const enterSends = {
  get now(): boolean {
    return !(matchMedia("(pointer: coarse)").matches && matchMedia("(max-width: 820px)").matches);
  },
};

/**
 * Whether a key in a text field sends it.
 *
 * Enter also confirms a Chinese word, which must never send: neither while a word is composed, nor for the key that
 * ends it, whose code is 229 (in Safari, composing ends a moment too early).
 */
export function sends(event: KeyboardEvent): boolean {
  if (event.key !== "Enter" || event.isComposing || event.keyCode === 229 || event.shiftKey || event.altKey) return false;
  return event.ctrlKey || event.metaKey || enterSends.now;
}
