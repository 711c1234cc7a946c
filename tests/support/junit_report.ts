/** Failed test of a report. */
export interface FailedTest {
  readonly name: string;
  readonly file: string;
  readonly message: string;
}

/** Results of a run of tests. */
export interface TestReport {
  readonly passed: number;
  readonly failed: readonly FailedTest[];
  /** Names of skipped tests, with the reason where the report has it. */
  readonly skipped: readonly string[];
}

const CASE_REGEXP = /<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g;
const FAILURE_REGEXP = /<(?:failure|error)\b([^>]*?)(?:\/>|>([\s\S]*?)<\/)/;
const SKIPPED_REGEXP = /<skipped\b([^>]*)/;
const ENTITY_REGEXP = /&(?:#(\d+)|#x([\da-f]+)|(\w+));/gi;
const ENTITIES: Readonly<Record<string, string>> = {
  amp: "&",
  apos: "'",
  gt: ">",
  lt: "<",
  quot: '"',
};

/**
 * Reads the JUnit report that `node --test`, `deno test` and `bun test` can all
 * write, their only common format.
 *
 * @param xml Text of the report; attributes may contain an unescaped `>`.
 */
export function readJunitReport(xml: string): TestReport {
  const failed: FailedTest[] = [];
  const skipped: string[] = [];
  let passed = 0;
  for (const [, attributes = "", body = ""] of guardAngles(xml)) {
    // Node escapes the quotes in names twice.
    const name = attribute(attributes, "name").replaceAll("&quot;", '"');
    const failure = FAILURE_REGEXP.exec(body);
    if (failure !== null) {
      const [, head = "", text = ""] = failure;
      const file = attribute(attributes, "file") ||
        attribute(attributes, "classname");
      const message = decode(text).trim() || attribute(head, "message");
      failed.push({ name, file, message });
      continue;
    }
    const skip = SKIPPED_REGEXP.exec(body);
    if (skip === null) passed++;
    else {
      const why = attribute(skip[1] ?? "", "message");
      skipped.push(why === "" ? name : `${name} (${why})`);
    }
  }
  return { passed, failed, skipped };
}

/** Node does not escape `>` in attributes, which would end the tag early. */
function guardAngles(xml: string): Iterable<RegExpMatchArray> {
  const guarded = xml.replace(
    /="[^"]*"/g,
    (value) => value.replaceAll(">", "&gt;"),
  );
  return guarded.matchAll(CASE_REGEXP);
}

function attribute(attributes: string, name: string): string {
  const match = new RegExp(`\\b${name}="([^"]*)"`).exec(attributes);
  return decode(match?.[1] ?? "");
}

function decode(text: string): string {
  return text.replace(ENTITY_REGEXP, (whole, decimal, hex, name) => {
    if (decimal) return String.fromCodePoint(Number(decimal));
    if (hex) return String.fromCodePoint(Number.parseInt(hex, 16));
    return ENTITIES[name] ?? whole;
  });
}
