import { barChart } from "./bar_chart.ts";
import { curveChart } from "./curve_chart.ts";
import { HEADLINES, machinesOf, type Report } from "./headlines.ts";

/** Headlines of the chart: those that compare with other clients. */
const SHOWN: readonly string[] = ["watch-path", "events", "sync", "startup"];

/** Charts of a run, by file name. */
export function charts(report: Report): Readonly<Record<string, string>> {
  const shown = HEADLINES.filter(({ bench }) => SHOWN.includes(bench));
  const memory = report.results.find(({ bench, curve }) =>
    bench === "memory" && curve !== undefined
  );
  return {
    "headlines.svg": barChart(shown, report),
    ...(memory?.curve !== undefined && {
      "memory.svg": curveChart(memory.curve, {
        title: `Memory with 1,000,000 Pods, MiB over seconds, on ${
          machinesOf(report, ["memory"])
        }`,
        limit: { value: 512, name: "512 MiB" },
      }),
    }),
  };
}
