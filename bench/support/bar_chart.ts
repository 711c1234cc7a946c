import {
  type Bar,
  barsOf,
  type Headline,
  machinesOf,
  type Report,
} from "./headlines.ts";
import { digits } from "./digits.ts";

const WIDTH = 760;
const NAME_WIDTH = 130;
const VALUE_WIDTH = 90;
const BAR_HEIGHT = 16;
const BAR_STEP = 20;
const TITLE_STEP = 26;
const GROUP_GAP = 18;

/** Text colour, legible on light and dark backgrounds. */
export const TEXT_COLOR = "#7d8590";
export const OWN_COLOR = "#2f81f7";
export const RIVAL_COLOR = "#a0a8b0";
export const FONT = "font-family:system-ui,sans-serif;font-size:13px";

/**
 * Bar chart of headlines: a group of bars for each, the longest at full width.
 */
export function barChart(
  headlines: readonly Headline[],
  report: Report,
): string {
  const parts: string[] = [];
  let y = 0;
  for (const headline of headlines) {
    const bars = barsOf(headline, report);
    if (bars.length < 2) continue;
    const title = `${headline.what} (${headline.shortUnit})`;
    parts.push(text(0, y + 16, title, `fill="${TEXT_COLOR}"`));
    y += TITLE_STEP;
    const most = Math.max(...bars.map(({ value }) => value));
    for (const bar of bars) {
      parts.push(drawn(bar, y, most));
      y += BAR_STEP;
    }
    y += GROUP_GAP;
  }
  const benches = headlines.map(({ bench }) => bench);
  const machines = machinesOf(report, benches);
  return svg(y, `Coracle and others, on ${machines}`, parts);
}

function drawn({ name, value }: Bar, y: number, most: number): string {
  const room = WIDTH - NAME_WIDTH - VALUE_WIDTH;
  const width = Math.max(1, Math.round(room * value / most));
  const color = name === "Coracle" ? OWN_COLOR : RIVAL_COLOR;
  const middle = y + BAR_HEIGHT - 4;
  return [
    text(
      NAME_WIDTH - 8,
      middle,
      name,
      `fill="${TEXT_COLOR}" text-anchor="end"`,
    ),
    `<rect x="${NAME_WIDTH}" y="${y}" width="${width}" height="${BAR_HEIGHT}" rx="2" fill="${color}"/>`,
    text(
      NAME_WIDTH + width + 6,
      middle,
      digits(value),
      `fill="${name === "Coracle" ? OWN_COLOR : TEXT_COLOR}"`,
    ),
  ].join("\n");
}

/** SVG text element. */
export function text(
  x: number,
  y: number,
  words: string,
  attributes: string,
): string {
  const escaped = words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${x}" y="${y}" ${attributes}>${escaped}</text>`;
}

/** SVG document with a title for screen readers. */
export function svg(
  height: number,
  title: string,
  parts: readonly string[],
): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" style="${FONT}">
<title>${title}</title>
${parts.join("\n")}
</svg>
`;
}
