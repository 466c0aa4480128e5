/** The frame that marks what the engine added as background, for the model's eyes only. */
const FRAME = /^\s*<(background|summary|wishes)-([0-9a-f]{8})>\n(?:[^\n]*\n\n)?([\s\S]*)\n<\/\1-\2>\s*$/;

/** The text inside a frame.  "<background-0a1b2c3d>\nQuoted:\n\nYes.\n</background-0a1b2c3d>" -> "Yes." */
export function insideFrame(text: string): string {
  return FRAME.exec(text)?.[3] ?? text;
}
