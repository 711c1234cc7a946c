import type { CellReport } from "./cells.ts";
import { OPERATIONS } from "./fault_gate.ts";
import { FAULT_ROWS } from "./fault_rows.ts";

export const RUNTIMES = ["node", "deno", "bun"] as const;

export type Runtime = typeof RUNTIMES[number];

const NAMES = { node: "Node", deno: "Deno", bun: "Bun" } as const;
/** Marks of the generated part of docs/faults.md. */
const BEGIN = "<!-- begin of the table: npm run test:faults -->";
const END = "<!-- end of the table -->";

const PEER_WORDS = {
  equal: "recovers",
  ended: "ends",
  behind: "misses",
  "not tried": "not tried",
} as const;

/** Generated part of the documentation, with the reasons of empty cells. */
export function faultTable(
  reports: Readonly<Record<Runtime, CellReport>>,
): string {
  const reasons: string[] = [];
  const rows = FAULT_ROWS.map((row) => {
    const cells = OPERATIONS.map((operation) => {
      const effect = row.effects[operation];
      if (typeof effect === "string") {
        if (!reasons.includes(effect)) reasons.push(effect);
        return `– (${reasons.indexOf(effect) + 1})`;
      }
      const failed = RUNTIMES.filter((runtime) =>
        reports[runtime].cells[`${row.id}/${operation}`] !== null
      );
      return failed.length === 0
        ? "✓"
        : `fails: ${failed.map((runtime) => NAMES[runtime]).join(", ")}`;
    });
    const peer = (["list", "watch"] as const).map((operation) =>
      typeof row.effects[operation] === "string"
        ? "–"
        : PEER_WORDS[reports.node.peer[`${row.id}/${operation}`] ?? "not tried"]
    );
    return line([row.title, ...cells, ...peer]);
  });
  const head = [
    "Fault",
    "List",
    "Pages",
    "WatchList",
    "Watch",
    "Write",
    "Lease",
    "client-node: list",
    "client-node: watch",
  ];
  return [
    BEGIN,
    "",
    line(head),
    line(head.map(() => "---")),
    ...rows,
    "",
    ...reasons.map((reason, index) => `${index + 1}. ${reason}`),
    "",
    END,
  ].join("\n");
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

/** Text with its generated part replaced. */
export function withFaultTable(text: string, table: string): string {
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin < 0 || end < begin) {
    throw new Error(
      "Cannot write the table: docs/faults.md must have its marks",
    );
  }
  return text.slice(0, begin) + table + text.slice(end + END.length);
}

/** Cells of the table in the documentation, by the title of their row. */
export function writtenCells(text: string): Map<string, readonly string[]> {
  const part = text.slice(text.indexOf(BEGIN), text.indexOf(END));
  const rows = part.split("\n").filter((row) => row.startsWith("| "))
    .map((row) => row.split("|").slice(1, -1).map((cell) => cell.trim()));
  return new Map(rows.slice(2).map(([title = "", ...cells]) => [title, cells]));
}
