/** Colours and stripes for canvases, which cannot read the page's tokens by themselves. */

/** The colour that a token has now.  ("--accent", element) -> "rgb(15, 110, 98)" */
export function inkOf(token: string, within: HTMLElement): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  within.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

const TILE = 8; // pixels; one stripe and one gap

/** Slanted stripes of a colour on a ground, so that series differ by more than their colour. */
export function stripes(colour: string, ground: string): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = tile.height = TILE;
  const pen = tile.getContext("2d");
  if (!pen) return colour;
  pen.fillStyle = ground; // the bars of other series stand behind and must not shine through
  pen.fillRect(0, 0, TILE, TILE);
  pen.strokeStyle = colour;
  pen.lineWidth = TILE / 2.4;
  for (const from of [-TILE, 0, TILE]) {
    pen.moveTo(from, TILE);
    pen.lineTo(from + TILE, 0);
  }
  pen.stroke();
  return pen.createPattern(tile, "repeat") ?? colour;
}
