/** Answer of a server. */
export interface ServerAnswer {
  readonly status: number;
  readonly text: string;
  readonly warnings: readonly string[];
}

/** Fields whose values each server generates. */
const OWN_FIELDS: ReadonlySet<string> = new Set([
  "uid",
  "resourceVersion",
  "creationTimestamp",
  "deletionTimestamp",
  "time",
  "lastTransitionTime",
]);

/** Texts of Go's run time and of values that each server generates. */
const OWN_TEXTS = /[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\dT[\d:]{8}Z/g;

/** Lists whose order depends on the time of writes, with the fields that order them. */
const ORDERED_BY: Readonly<Record<string, readonly string[]>> = {
  managedFields: ["operation", "manager", "subresource", "apiVersion"],
  conditions: ["type"],
};

/** What of an answer must be equal: its status, body and warnings, in any order of causes. */
export function comparable({ status, text, warnings }: ServerAnswer): unknown {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = text;
  }
  return {
    status,
    body: plain(withoutOrder(body)),
    warnings: [...warnings].sort(),
  };
}

/** A message about several fields has them in the order of Go's maps. */
function withoutOrder(body: unknown): unknown {
  const { kind, details, message, ...rest } = body as {
    kind?: string;
    details?: { causes?: readonly unknown[] };
    message?: string;
  };
  const causes = details?.causes;
  const [, typed, problems] =
    /^(failed to create typed .*?\)): (?:errors:\n)?([^]*)$/.exec(
      message ?? "",
    ) ?? [];
  if (problems !== undefined) {
    return {
      ...rest,
      kind,
      message: typed,
      problems: /not declared in schema/.test(problems)
        ? "an unknown field"
        : problems.split("\n").map((line) => line.trim()).sort(),
    };
  }
  if (kind !== "Status" || causes === undefined || causes.length < 2) {
    return body;
  }
  const sorted = causes.map((cause) => JSON.stringify(cause)).sort();
  return {
    ...rest,
    kind,
    details: { ...details, causes: sorted },
    message: message?.split(" is invalid: ", 1)[0],
  };
}

function plain(value: unknown, name = ""): unknown {
  if (OWN_FIELDS.has(name)) return `<${name}>`;
  if (typeof value === "string") return value.replaceAll(OWN_TEXTS, "<own>");
  if (Array.isArray(value)) {
    const items = value.map((item) => plain(item));
    const order = ORDERED_BY[name];
    if (order === undefined) return items;
    const key = (item: unknown) =>
      JSON.stringify(order.map((field) => Reflect.get(Object(item), field)));
    return items.sort((a, b) => key(a) < key(b) ? -1 : 1);
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1)
      .map(([key, item]) => [key, plain(item, key)]),
  );
}

/** Difference of two answers at one path. */
export interface AnswerDifference {
  readonly path: string;
  readonly embedded: string;
  readonly real: string;
}

/** First difference of two comparable answers. */
export function firstDifference(
  embedded: unknown,
  real: unknown,
  path = "",
): AnswerDifference | undefined {
  if (Object.is(embedded, real)) return undefined;
  if (
    typeof embedded === "object" && typeof real === "object" && embedded &&
    real && Array.isArray(embedded) === Array.isArray(real)
  ) {
    for (const key of new Set([...keysOf(embedded), ...keysOf(real)])) {
      const found = firstDifference(
        (embedded as Record<string, unknown>)[key],
        (real as Record<string, unknown>)[key],
        `${path}.${key}`,
      );
      if (found !== undefined) return found;
    }
    return undefined;
  }
  return { path, embedded: shown(embedded), real: shown(real) };
}

function keysOf(value: object): string[] {
  return Object.keys(value);
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? "absent").slice(0, 300);
}
