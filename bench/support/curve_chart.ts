import { OWN_COLOR, svg, text, TEXT_COLOR } from "./bar_chart.ts";
import type { Curve } from "./bench.ts";

const LEFT = 56;
const TOP = 28;
const PLOT_WIDTH = 690;
const PLOT_HEIGHT = 220;

/** Labels of a chart. */
export interface CurveChartOptions {
  readonly title: string;
  /** Limit that the curve should stay below. */
  readonly limit: { readonly value: number; readonly name: string };
}

/** Line chart of one value over time. */
export function curveChart(curve: Curve, options: CurveChartOptions): string {
  const { title, limit } = options;
  const last = curve.at(-1)?.[0] ?? 1;
  const most = Math.max(limit.value, ...curve.map(([, value]) => value)) * 1.1;
  const x = (seconds: number) => LEFT + PLOT_WIDTH * seconds / last;
  const y = (value: number) => TOP + PLOT_HEIGHT * (1 - value / most);
  const line = (value: number, dashes: string) =>
    `<line x1="${LEFT}" x2="${LEFT + PLOT_WIDTH}" y1="${
      y(value).toFixed(1)
    }" ` +
    `y2="${y(value).toFixed(1)}" stroke="${TEXT_COLOR}"${dashes}/>`;
  const label = (at: number, high: number, words: string, anchor: string) =>
    text(
      Math.round(at),
      Math.round(high),
      words,
      `fill="${TEXT_COLOR}" text-anchor="${anchor}"`,
    );
  const points = curve.map(([seconds, value]) =>
    `${x(seconds).toFixed(1)},${y(value).toFixed(1)}`
  );
  return svg(TOP + PLOT_HEIGHT + 30, title, [
    label(0, 16, title, "start"),
    line(0, ""),
    line(limit.value, ' stroke-dasharray="4 4"'),
    label(LEFT - 6, y(0) + 4, "0", "end"),
    label(LEFT - 6, y(limit.value) + 4, String(limit.value), "end"),
    ...ticks(last).map((seconds) =>
      label(x(seconds), y(0) + 20, `${seconds} s`, "middle")
    ),
    `<polyline points="${
      points.join(" ")
    }" fill="none" stroke="${OWN_COLOR}" stroke-width="2"/>`,
  ]);
}

/** About six round numbers up to a maximum. */
function ticks(last: number): number[] {
  const step =
    [1, 2, 5, 10, 20, 30, 60, 120].find((size) => last / size <= 8) ??
      300;
  return Array.from(
    { length: Math.floor(last / step) + 1 },
    (_, i) => i * step,
  );
}
