/**
 * Stacked bars by day, drawn with uPlot.
 *
 * Owns everything that touches the drawing library, which is fetched only when a chart is first shown.
 */
import type uPlot from "uplot";
import { day } from "./figures";
import { inkOf, stripes } from "./ink";
import { stacked, type Series } from "./series";

const HEIGHT = 190; // pixels
const AXIS_ROOM = 52; // pixels for the figures of the vertical axis
const DAY_LABEL_HEIGHT = 26; // pixels below the horizontal axis
const DAY_LABEL_ROOM = 64; // pixels that the name of a day needs

export interface DayPlot {
  resize(width: number): void;
  destroy(): void;
}

interface Drawing {
  days: string[];
  series: Series[];
  format: (value: number) => string;
  hovered: (index: number | null) => void;
}

/** Draw into an element; the returned value resizes and removes the drawing. */
export async function drawDays(into: HTMLElement, drawing: Drawing): Promise<DayPlot> {
  const [{ default: Plot }] = await Promise.all([import("uplot"), import("uplot/dist/uPlot.min.css")]);
  const plot = new Plot(options(Plot, into, drawing), columns(drawing), into);
  return {
    resize: (width) => plot.setSize({ width, height: HEIGHT }),
    destroy: () => plot.destroy(),
  };
}

function columns({ days, series }: Drawing): uPlot.AlignedData {
  return [days.map((_, index) => index), ...stacked(series).reverse()];
}

function options(Plot: typeof uPlot, into: HTMLElement, drawing: Drawing): uPlot.Options {
  const bars = Plot.paths.bars?.({ size: [0.72, 30], radius: 0.12 });
  const faint = inkOf("--ink-faint", into);
  const ground = inkOf("--raised", into);
  const grid = { stroke: inkOf("--line", into), width: 1 };
  const axis = { stroke: faint, font: `11px ${getComputedStyle(into).fontFamily}`, ticks: { show: false } };
  return {
    width: Math.max(into.clientWidth, 200),
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: [-0.6, drawing.days.length - 0.4] },
      y: { range: (_, __, high) => [0, high > 0 ? high * 1.08 : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: DAY_LABEL_HEIGHT,
        incrs: [1, 2, 5, 7, 14, 30],
        space: DAY_LABEL_ROOM,
        values: (_, places) => places.map((place) => dayAt(drawing.days, place)),
      },
      { ...axis, grid, size: AXIS_ROOM, values: (_, values) => values.map(drawing.format) },
    ],
    series: [
      {},
      ...[...drawing.series].reverse().map(({ label, token, striped }) => {
        const colour = inkOf(token, into);
        return {
          label,
          paths: bars,
          points: { show: false },
          stroke: colour,
          width: 0,
          fill: striped ? () => stripes(colour, ground) : colour,
        } as uPlot.Series;
      }),
    ],
    hooks: { setCursor: [(plot) => drawing.hovered(plot.cursor.idx ?? null)] },
  };
}

function dayAt(days: string[], place: number): string {
  const text = Number.isInteger(place) ? days[place] : undefined;
  return text === undefined ? "" : day(text);
}
