/** Part of a CPU profile of V8 that is used. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  /** Node of each sample. */
  readonly samples: readonly number[];
  /** Microseconds from one sample to the next. */
  readonly timeDeltas: readonly number[];
}

/** Function in its call stack. */
export interface ProfileNode {
  readonly id: number;
  readonly callFrame: {
    readonly functionName: string;
    readonly url: string;
    /** Line, counted from zero. */
    readonly lineNumber: number;
  };
  readonly children?: readonly number[] | undefined;
}

/** Time of a part or of a function, in microseconds. */
export interface PartTime {
  readonly name: string;
  readonly part: string;
  readonly time: number;
}

/**
 * Part of an operator's work by the file of a function, or by file and function
 * as `file.ts:function`: the first match counts. Functions of other files belong
 * to the part of their caller.
 */
const PARTS: readonly (readonly [part: string, where: RegExp])[] = [
  ["user", /\/bench\//],
  [
    "TLS and sockets",
    /node:(_tls|internal\/tls|tls|net|internal\/stream_base|internal\/streams|internal\/js_stream)/,
  ],
  [
    "timers and promises",
    /node:internal\/(timers|process|async_hooks|abort|event_target)|node:(timers|events|async_hooks)/,
  ],
  ["node, rest", /^node:/],
  [
    "receive",
    /line_splitter|\/cache\/watch\/|transport\/(exchange|http_connection)|undici/,
  ],
  ["echo", /own_write_window|expectations|explained_change/],
  ["decode", /object_decoder|store\/bodies/],
  [
    "filter",
    /controller\/(filters|primary_source|watch_group|source_group|event_source|namespaces)|controller\/watch\/|informer\/subscriptions/,
  ],
  [
    "queue",
    /\/core\/queue\/|run\/(dispatcher|event_processor|concurrency_cap|run_state)|\/core\/clock/,
  ],
  [
    "compare",
    /run\/(write_match|status_leftovers|apply_memory|keyed_lists|owner)|\/core\/patch\/|\/core\/crd\//,
  ],
  ["serialise", /client\/request\.ts:.*([bB]ody|[jJ]son|[eE]ncod|[sS]erial)/],
  [
    "answer",
    /client\/(response\.ts|transport\/(exchange|undici_transport|request_encoder))|store_writer\.ts:.*([aA]nswer|[wW]ritten)/,
  ],
  ["send", /\/core\/client\//],
  ["scan", /\/core\/json\//],
  ["store", /\/core\/cache\//],
  ["run", /\/core\/(controller|operator|tracing|metrics)/],
];

/** Parts of V8 that are no functions. */
const PROGRAM_PARTS: ReadonlyMap<string, string> = new Map([
  ["(garbage collector)", "garbage collection"],
  ["(program)", "native code (TLS, system calls)"],
  ["(idle)", "idle"],
]);
/** Files whose functions belong to the part of their caller. */
const HELPERS =
  /^node:(internal\/)?(encoding|buffer|util|url|validators)|undici|chunk_queue/;
/** Part of calls by the answer's reader into shared code, such as scanners. */
const CALLER_COUNTS = { part: "answer", below: ["scan", "receive"] };

function name({ callFrame }: ProfileNode): string {
  const { functionName, url, lineNumber } = callFrame;
  const file = url.replace(
    /^file:\/\/.*?\/(?=core\/|bench\/|workflows\/|node_modules\/)/,
    "",
  );
  const text = functionName === "" ? "(anonymous)" : functionName;
  return url === "" ? text : `${text} ${file}:${lineNumber + 1}`;
}

function partOf(node: ProfileNode, caller: string): string {
  const { functionName, url } = node.callFrame;
  const program = PROGRAM_PARTS.get(functionName);
  if (program !== undefined) return program;
  if (url === "" || HELPERS.test(url)) return caller;
  const where = `${url}:${functionName}`;
  const part = PARTS.find(([, pattern]) => pattern.test(where))?.[0] ?? caller;
  const { part: reader, below } = CALLER_COUNTS;
  return caller === reader && below.includes(part) ? reader : part;
}

function sorted(times: Iterable<PartTime>): PartTime[] {
  return [...times].sort((a, b) => b.time - a.time);
}

/**
 * Time of the operator's parts and of its functions, the most first. Time in
 * which the process waited is left out.
 */
export function timesOf({ nodes, samples, timeDeltas }: CpuProfile): {
  readonly parts: readonly PartTime[];
  readonly functions: readonly PartTime[];
} {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parts = new Map<number, string>();
  const visit = (node: ProfileNode, caller: string) => {
    const part = partOf(node, caller);
    parts.set(node.id, part);
    for (const id of node.children ?? []) {
      const child = byId.get(id);
      if (child !== undefined) visit(child, part);
    }
  };
  if (nodes[0] !== undefined) visit(nodes[0], "other");
  const byPart = new Map<string, PartTime>();
  const byFunction = new Map<string, PartTime>();
  const add = (map: Map<string, PartTime>, one: PartTime) => {
    const before = map.get(one.name)?.time ?? 0;
    map.set(one.name, { ...one, time: before + one.time });
  };
  for (const [i, id] of samples.entries()) {
    const node = byId.get(id);
    const part = parts.get(id) ?? "other";
    if (node === undefined || part === "idle") continue;
    // A sample stands for the time until the next one.
    const time = timeDeltas[i + 1] ?? 0;
    add(byPart, { name: part, part, time });
    add(byFunction, { name: name(node), part, time });
  }
  return {
    parts: sorted(byPart.values()),
    functions: sorted(byFunction.values()),
  };
}
