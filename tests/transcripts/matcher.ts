/** Difference between an answer and its recording at one path. */
export interface Difference {
  readonly path: string;
  readonly expected: unknown;
  readonly actual: unknown;
  readonly why?: string | undefined;
}

const PLACEHOLDER =
  /<(?<kind>uid|rv|gen|time|microtime|continue|any|present)(?::(?<id>\w+))?>/g;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:Z|[+-]\d\d:\d\d)$/;
const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d)$/;

/**
 * Compares recordings with the answers of a server. Placeholders stand for
 * values that differ between runs; within one scenario each has one value.
 */
export class Matcher {
  readonly #values: Map<string, string> = new Map();
  /** resourceVersions by their rank among all of the scenario. */
  readonly #revisions: Map<number, bigint> = new Map();

  /** Where an answer differs from its recording. */
  compare(expected: unknown, actual: unknown, path = ""): Difference[] {
    if (typeof expected === "string") {
      const why = this.#text(expected, actual);
      return why === undefined ? [] : [{ path, expected, actual, why }];
    }
    if (Array.isArray(expected)) return this.#list(expected, actual, path);
    if (expected !== null && typeof expected === "object") {
      return this.#object(expected as Record<string, unknown>, actual, path);
    }
    return expected === actual ? [] : [{ path, expected, actual }];
  }

  /**
   * The recording of an answer: what matches keeps its placeholders, and other
   * values get those that this scenario knows.
   */
  record(expected: unknown, actual: unknown): unknown {
    if (typeof actual === "string") {
      return typeof expected === "string" &&
          this.#text(expected, actual) === undefined
        ? expected
        : this.#placeholders(actual);
    }
    if (actual === null || typeof actual !== "object") return actual;
    if (Array.isArray(actual)) {
      const list = Array.isArray(expected) ? expected : [];
      return actual.map((item, index) => this.record(list[index], item));
    }
    const fields = new Map(Object.entries(actual));
    const known = expected !== null && typeof expected === "object"
      ? expected as Record<string, unknown>
      : {};
    const recorded: Record<string, unknown> = {};
    const field = (name: string, before: unknown, value: unknown) =>
      name === "resourceVersion" && this.#text(String(before), value)
        ? this.#rank(String(value))
        : this.record(before, value);
    for (const [name, value] of Object.entries(known)) {
      const real = this.#fieldName(name, known, fields);
      if (!fields.has(real)) continue;
      recorded[name] = field(name, value, fields.get(real));
      fields.delete(real);
    }
    for (const [name, value] of fields) {
      recorded[this.#placeholders(name)] = field(name, undefined, value);
    }
    return recorded;
  }

  #placeholders(text: string): string {
    if (TIME.test(text)) return "<time>";
    if (MICRO_TIME.test(text)) return "<microtime>";
    for (const [placeholder, value] of this.#values) {
      text = text.replaceAll(value, `<${placeholder}>`);
    }
    // Addresses of Services are chosen at random.
    return UUID.test(text) || /^10(?:\.\d+){3}$/.test(text) ? "<any>" : text;
  }

  #rank(text: string): string {
    for (const [rank, value] of this.#revisions) {
      if (String(value) === text) return `<rv:${rank}>`;
    }
    return "<rv:any>";
  }

  #list(expected: unknown[], actual: unknown, path: string): Difference[] {
    if (!Array.isArray(actual)) return [{ path, expected, actual }];
    const length = Math.max(expected.length, actual.length);
    return Array.from({ length }, (_, index) => {
      const place = `${path}[${index}]`;
      if (index < expected.length && index < actual.length) {
        return this.compare(expected[index], actual[index], place);
      }
      return [{
        path: place,
        expected: index < expected.length ? expected[index] : "<absent>",
        actual: index < actual.length ? actual[index] : "<absent>",
      }];
    }).flat();
  }

  #object(
    expected: Record<string, unknown>,
    actual: unknown,
    path: string,
  ): Difference[] {
    if (
      actual === null || typeof actual !== "object" || Array.isArray(actual)
    ) return [{ path, expected, actual }];
    const fields = new Map(Object.entries(actual));
    const differences: Difference[] = [];
    for (
      const [name, value] of Object.entries(
        "items" in expected ? withAnyRevision(expected) : expected,
      )
    ) {
      const real = this.#fieldName(name, expected, fields);
      const found = fields.get(real);
      fields.delete(real);
      differences.push(...this.compare(value, found, `${path}.${name}`));
    }
    for (const [name, value] of fields) {
      differences.push({
        path: `${path}.${name}`,
        expected: "<absent>",
        actual: value,
      });
    }
    return differences;
  }

  /**
   * Replaces uids in field names, such as those of owners in managed fields.
   */
  #fieldName(
    name: string,
    expected: Record<string, unknown>,
    fields: ReadonlyMap<string, unknown>,
  ): string {
    if (!name.includes("<uid:")) return name;
    return [...fields.keys()].find((candidate) =>
      !Object.hasOwn(expected, candidate) &&
      this.#text(name, candidate) === undefined
    ) ?? name;
  }

  /** Why a text does not match; undefined if it does. */
  #text(expected: string, actual: unknown): string | undefined {
    if (expected === "<any>" || expected === "<present>") {
      return actual === undefined || actual === null ? "no value" : undefined;
    }
    const marks = [...expected.matchAll(PLACEHOLDER)];
    if (marks.length === 0) {
      // What is picked and not there is described by a text.
      return expected === actual ? undefined : "another value";
    }
    if (typeof actual !== "string") return "not a text";
    let pattern = "";
    let last = 0;
    for (const mark of marks) {
      pattern += `${escape(expected.slice(last, mark.index))}([^]*?)`;
      last = mark.index + mark[0].length;
    }
    pattern += escape(expected.slice(last));
    const found = new RegExp(`^${pattern}$`).exec(actual);
    if (found === null) return "another text";
    for (const [index, mark] of marks.entries()) {
      const { kind = "", id = "" } = mark.groups ?? {};
      const why = this.#value(kind, id, found[index + 1] ?? "");
      if (why !== undefined) return why;
    }
    return undefined;
  }

  #value(kind: string, id: string, actual: string): string | undefined {
    switch (kind) {
      case "uid":
        return UUID.test(actual) && this.#isBound(`uid:${id}`, actual)
          ? undefined
          : "another uid";
      case "gen":
        return /^[a-z0-9]{5}$/.test(actual) &&
            this.#isBound(`gen:${id}`, actual)
          ? undefined
          : "another suffix";
      case "rv":
        return this.#revision(id, actual);
      case "time":
        return TIME.test(actual) ? undefined : "no time";
      case "microtime":
        return MICRO_TIME.test(actual) ? undefined : "no time with fraction";
      default:
        return actual === "" ? "no value" : undefined;
    }
  }

  /** Whether a placeholder and a value belong to each other only. */
  #isBound(placeholder: string, actual: string): boolean {
    const known = this.#values.get(placeholder);
    if (known !== undefined) return known === actual;
    const [kind] = placeholder.split(":");
    for (const [other, value] of this.#values) {
      if (other.startsWith(`${kind}:`) && value === actual) return false;
    }
    this.#values.set(placeholder, actual);
    return true;
  }

  #revision(id: string, actual: string): string | undefined {
    if (!/^\d+$/.test(actual)) return "no resourceVersion";
    if (id === "any") return undefined;
    const rank = Number(id);
    const value = BigInt(actual);
    for (const [other, revision] of this.#revisions) {
      const fits = other === rank
        ? value === revision
        : other < rank
        ? value > revision
        : value < revision;
      if (!fits) return `a resourceVersion out of order with rank ${other}`;
    }
    this.#revisions.set(rank, value);
    return undefined;
  }
}

/** Replaces the resourceVersion of a list, which depends on other writes. */
function withAnyRevision(
  list: Record<string, unknown>,
): Record<string, unknown> {
  const { metadata } = list as { metadata?: Record<string, unknown> };
  return metadata?.resourceVersion === undefined ||
      metadata.resourceVersion === "0"
    ? list
    : { ...list, metadata: { ...metadata, resourceVersion: "<rv:any>" } };
}

function escape(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
