import type {
  PlannedAction,
  PlannedChange,
  PlannedField,
  PlannedFight,
  PlanReport,
} from "../testing/plan/plan_report.ts";

/** Objects whose details are shown without a filter. */
const SHOWN_OBJECTS = 20;
/** Fields that are shown of an object. */
const SHOWN_FIELDS = 12;
/** Objects that a summary names. */
const SHOWN_NAMES = 3;
/** Longest value that is shown, in characters. */
const SHOWN_VALUE = 120;

/** Size of a text in Markdown up to which objects are added, in characters. */
const MAX_MARKDOWN = 64_000;
/** Longest line of a block of Markdown before the objects, in characters. */
const MAX_LINE = 240;

/** Actions in the order of their danger. */
const ACTIONS: readonly PlannedAction[] = [
  "delete",
  "replace",
  "change",
  "create",
];

/** How a report is shown. */
export interface PlanView {
  /** Filters of the details: kinds, names or `KIND NAMESPACE/NAME`; empty: the first. */
  readonly show: readonly string[];
}

/** Whether a plan has nothing to do. */
export function isEmptyPlan(
  { changes, dropped = [], loops, failures }: PlanReport,
): boolean {
  return [changes, dropped, loops, failures].every(({ length }) =>
    length === 0
  );
}

/** Text of a plan for a terminal. */
export function planText(report: PlanReport, view: PlanView): string {
  const blocks = [
    planHead(report),
    ...summaryLines(report),
    ...planSections(report).map(({ title, lines }) =>
      `${title}\n${lines.map((line) => `  ${line}`).join("\n")}`
    ),
    detailsText(report, view),
  ].filter((block) => block !== "");
  return `${blocks.join("\n\n")}\n`;
}

/**
 * Text of a plan in Markdown, for a comment of a pull request, which has a limit of
 * 65,536 characters: what is too much is counted.
 */
export function planMarkdown(
  report: PlanReport,
  { operator, show }: PlanView & { readonly operator: string },
): string {
  const { changes } = report;
  const rows = byKind(changes).map(([kind, list]) =>
    `| ${kind} | ${
      ACTIONS.map((action) =>
        list.filter((one) => one.action === action).length || ""
      ).join(" | ")
    } |`
  );
  const table = rows.length === 0 ? [] : [
    [
      `| kind | ${ACTIONS.join(" | ")} |`,
      "| --- | ---: | ---: | ---: | ---: |",
      ...rows,
    ]
      .join("\n"),
  ];
  const detail = (change: PlannedChange) =>
    change.fields.length === 0
      ? `- ${escapeHtml(changeTitle(change))}`
      : `<details><summary>${escapeHtml(changeTitle(change))}</summary>\n\n${
        fenced("diff", changeLines(change).join("\n"))
      }\n\n</details>`;
  const blocks = [
    `### Plan of \`${operator.replaceAll("`", "")}\``,
    planHead(report),
    ...table,
    ...causeLines(report).length === 0
      ? []
      : [fenced("text", bounded(causeLines(report)))],
    ...planSections(report).map(({ title, lines }) =>
      `**${title}**\n\n${fenced("text", bounded(lines))}`
    ),
  ];
  let size = blocks.join("\n\n").length;
  let shown = 0;
  for (const change of chosen(changes, show)) {
    const block = detail(change);
    size += block.length + 2;
    if (size > MAX_MARKDOWN) break;
    blocks.push(block);
    shown++;
  }
  const hidden = changes.length - shown;
  if (hidden > 0) blocks.push(`… and ${counted(hidden, "more object")}.`);
  return `${blocks.join("\n\n")}\n`;
}

/** Lines of a block of Markdown; the longest and the last are cut. */
function bounded(lines: readonly string[]): string {
  const kept = lines.slice(0, SHOWN_OBJECTS).map((line) =>
    line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}…` : line
  );
  const more = lines.length - kept.length;
  if (more > 0) kept.push(`… and ${more.toLocaleString("en")} more`);
  return kept.join("\n");
}

/** Code block whose fence is longer than any in its text. */
function fenced(language: string, text: string): string {
  const longest = Math.max(
    2,
    ...Array.from(text.matchAll(/`+/g), ([run]) => run.length),
  );
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

/** First line of a plan: how many objects change, and what was read and simulated. */
export function planHead(report: PlanReport): string {
  const { cluster, simulated, changes, dropped } = report;
  const { namespaces } = cluster;
  const where = namespaces === undefined ? "" : ` of ${namespaces.join(", ")}`;
  const what = isEmptyPlan(report)
    ? "Nothing to do"
    : changes.length === 0
    ? "No object changes"
    : `${counted(changes.length, "object")} would change`;
  const how = simulated.quiet ? "then it is at rest" : "and it does not rest";
  const since = dropped === undefined
    ? ""
    : ", compared with the older version";
  return `${what}${since}: ${
    counted(cluster.objects, "object")
  }${where} read from Kubernetes ${cluster.server}, ${
    durationText(simulated.duration)
  } simulated, ${how}.`;
}

function byKind(
  changes: readonly PlannedChange[],
): readonly [string, readonly PlannedChange[]][] {
  const kinds = new Map<string, PlannedChange[]>();
  for (const change of changes) {
    const list = kinds.get(change.kind) ?? [];
    list.push(change);
    kinds.set(change.kind, list);
  }
  return [...kinds].sort(([a], [b]) => a < b ? -1 : 1);
}

/** Summary: objects by kind and action, then by cause. */
function summaryLines(report: PlanReport): readonly string[] {
  const kinds = byKind(report.changes);
  if (kinds.length === 0) return [];
  const width = Math.max(...kinds.map(([kind]) => kind.length)) + 2;
  const lines = kinds.map(([kind, list]) => {
    const counts = ACTIONS.flatMap((action) => {
      const count = list.filter((one) => one.action === action).length;
      return count === 0 ? [] : [`${count} ${action}`];
    });
    return `  ${kind.padEnd(width)}${counts.join(", ")}`;
  });
  return [
    lines.join("\n"),
    `Why\n${causeLines(report).map((line) => `  ${line}`).join("\n")}`,
  ];
}

/** Causes with the fields that they change, the most frequent first. */
function causeLines({ changes }: PlanReport): readonly string[] {
  const causes = new Map<string, PlannedChange[]>();
  for (const change of changes) {
    const { action, kind, cause, fields } = change;
    const what = action === "change"
      ? `: ${
        [...new Set(fields.map(({ path }) => path.replace(/\[\d+\]/g, "[]")))]
          .slice(0, SHOWN_FIELDS).join(", ")
      }`
      : "";
    const taken = [
      ...new Set(fields.flatMap(({ takenFrom = [] }) => takenFrom)),
    ];
    const from = taken.length === 0 ? "" : `, taken from ${taken.join(", ")}`;
    const text = `${action} ${kind}, ${cause}${what}${from}`;
    const list = causes.get(text) ?? [];
    list.push(change);
    causes.set(text, list);
  }
  return [...causes].sort(([, a], [, b]) => b.length - a.length)
    .map(([text, list]) => {
      const names = list.slice(0, SHOWN_NAMES).map(nameOf).join(", ");
      const more = list.length > SHOWN_NAMES ? ", …" : "";
      return `${list.length} × ${text} (${names}${more})`;
    });
}

/** Part of a plan beside the changes of objects. */
export interface Section {
  readonly title: string;
  readonly lines: readonly string[];
}

/** What a plan has beside the changes of objects. */
export function planSections(report: PlanReport): readonly Section[] {
  const all: Section[] = [
    {
      title: "Never settles",
      lines: report.loops.slice(0, SHOWN_OBJECTS).map((
        { object, writes, period, states, fields },
      ) =>
        `${object}: ${counted(writes, "write")}, one every ${
          durationText(period)
        }${
          states === undefined ? "" : `, ${counted(states, "state")} in turn`
        }${
          fields.length === 0
            ? ", which change nothing"
            : `: ${fields.slice(0, SHOWN_FIELDS).join(", ")}`
        }`
      ),
    },
    {
      title: "Fights, if other managers set their fields back",
      lines: fightLines(report),
    },
    {
      title: "Runs that fail",
      lines: report.failures.map(({ error, count, objects }) =>
        `${count} × ${error}${
          objects.length === 0
            ? ""
            : ` (${objects.slice(0, SHOWN_NAMES).join(", ")}${
              objects.length > SHOWN_NAMES ? ", …" : ""
            })`
        }`
      ),
    },
    {
      title: "Requests outside of the cluster",
      lines: report.fetches.map(({ request, count, sent }) =>
        `${count} × ${request}${sent ? ", sent" : ", held back"}`
      ),
    },
    {
      title: "Rights that the operator's manifests do not grant",
      lines: report.missingRights.map(({ verb, group, resource }) =>
        `${verb} ${resource}${group === "" ? "" : `.${group}`}`
      ),
    },
    {
      title: "Events",
      lines: report.events.slice(0, SHOWN_OBJECTS).map((
        { type, reason, message, object, count },
      ) => `${count} × ${type} ${reason} on ${object}: ${message}`),
    },
    {
      title: "In answer, simulated: controllers of the cluster",
      lines: report.answers.map(({ kind, created, changed, deleted }) => {
        const counts = { created, changed, deleted };
        const texts = Object.entries(counts).filter(([, count]) => count > 0)
          .map(([name, count]) => `${count} ${name}`);
        return `${kind}: ${texts.join(", ")}`;
      }),
    },
    {
      title: "No longer, which the older version would do",
      lines: (report.dropped ?? []).slice(0, SHOWN_OBJECTS).map(changeTitle),
    },
    {
      title: "Not read",
      lines: report.unread.map(({ resource, namespace, why }) =>
        `${resource}${
          namespace === undefined ? "" : ` in ${namespace}`
        }: ${why}`
      ),
    },
    { title: "Notes", lines: report.notes },
  ];
  return all.filter(({ lines }) => lines.length > 0);
}

/** Fights by kind, manager and fields, the most frequent first. */
function fightLines({ fights }: PlanReport): readonly string[] {
  const groups = new Map<string, PlannedFight[]>();
  for (const fight of fights) {
    const { object, manager, fields } = fight;
    const paths = fields.slice(0, SHOWN_FIELDS).join(", ");
    const text = `${object.split(" ")[0]}: ${paths}, of ${manager}`;
    groups.set(text, [...groups.get(text) ?? [], fight]);
  }
  return [...groups].sort(([, a], [, b]) => b.length - a.length)
    .map(([text, list]) => {
      const names = list.slice(0, SHOWN_NAMES)
        .map(({ object }) => object.split(" ")[1]).join(", ");
      const more = list.length > SHOWN_NAMES ? ", …" : "";
      const longest = Math.max(...list.map(({ answer }) => answer));
      return `${list.length} × ${text}: the operator sets them again within ${
        durationText(Math.max(1_000, longest))
      } (${names}${more})`;
    });
}

function chosen(
  changes: readonly PlannedChange[],
  show: readonly string[],
): readonly PlannedChange[] {
  if (show.length === 0) return changes.slice(0, SHOWN_OBJECTS);
  return changes.filter((change) =>
    show.some((filter) =>
      [
        "all",
        change.kind,
        change.action,
        change.name,
        change.namespace,
        nameOf(change),
        `${change.kind} ${nameOf(change)}`,
      ].includes(filter)
    )
  );
}

function detailsText({ changes }: PlanReport, { show }: PlanView): string {
  if (changes.length === 0) return "";
  const list = chosen(changes, show);
  const blocks = list.map((change) =>
    [changeTitle(change), ...changeLines(change).map((line) => `  ${line}`)]
      .join("\n")
  );
  const hidden = changes.length - list.length;
  const none = show.length > 0 && list.length === 0
    ? [`No change is of ${show.join(", ")}.`]
    : [];
  const more = hidden === 0 ? [] : [
    `… and ${
      counted(hidden, "more object")
    }: --show all, or --show with a kind, an action or a name.`,
  ];
  return ["Details", ...none, ...blocks, ...more].join("\n\n");
}

function nameOf({ namespace, name }: PlannedChange): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** Title of a change, such as `change ConfigMap default/a: apply by a`. */
function changeTitle(change: PlannedChange): string {
  const { action, kind, cause, owner, note } = change;
  const whose = owner === undefined ? "" : ` of ${owner}`;
  const held = note === undefined ? "" : `; ${note}`;
  return `${action} ${kind} ${nameOf(change)}${whose}: ${cause}${held}`;
}

/** Fields of a change, in the form of `diff`. */
function changeLines({ fields }: PlannedChange): readonly string[] {
  const lines = fields.slice(0, SHOWN_FIELDS).flatMap(fieldLines);
  const more = fields.length - SHOWN_FIELDS;
  return more > 0 ? [...lines, `  … and ${more} more fields`] : lines;
}

function fieldLines(field: PlannedField): readonly string[] {
  const { path, takenFrom } = field;
  const from = takenFrom === undefined
    ? ""
    : `   (taken from ${takenFrom.join(", ")})`;
  return [
    ..."before" in field ? [`- ${path}: ${valueText(field.before)}`] : [],
    ..."after" in field ? [`+ ${path}: ${valueText(field.after)}${from}`] : [],
    ...!("after" in field) && from !== "" ? [`  ${from.trim()}`] : [],
  ];
}

function valueText(value: unknown): string {
  const text = planJson(value) ?? "";
  return text.length > SHOWN_VALUE ? `${text.slice(0, SHOWN_VALUE)}…` : text;
}

/** JSON of a plan or a part of it; large numbers lose their last digits. */
export function planJson(value: unknown, indent?: number): string {
  return JSON.stringify(
    value,
    (_, part: unknown) => typeof part === "bigint" ? Number(part) : part,
    indent,
  );
}

function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** Duration as text, such as `1h` or `90s`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds % 3_600 === 0) return `${seconds / 3_600}h`;
  if (seconds % 60 === 0) return `${seconds / 60}m`;
  return seconds > 600 ? `${Math.round(seconds / 60)}m` : `${seconds}s`;
}
