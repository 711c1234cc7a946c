/** A test that failed, as a report tells it. */
export interface FailedTest {
  readonly name: string;
  readonly file: string;
  readonly message: string;
}

/** What a run of tests came to. */
export interface TestReport {
  readonly passed: number;
  /** Names of the tests that passed, where each is told. */
  readonly passedNames?: ReadonlySet<string> | undefined;
  readonly failed: readonly FailedTest[];
  /** Names of the tests that were skipped, with the reason where it is told. */
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
 * write, the only account of a run that the three tell alike.
 *
 * @param xml The text of the report; attributes may hold `>` in any form.
 */
export function readJunitReport(xml: string): TestReport {
  const failed: FailedTest[] = [];
  const skipped: string[] = [];
  const passedNames = new Set<string>();
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
    if (skip === null) {
      passed++;
      passedNames.add(name);
    } else {
      const why = attribute(skip[1] ?? "", "message");
      skipped.push(why === "" ? name : `${name} (${why})`);
    }
  }
  return { passed, passedNames, failed, skipped };
}

/** Node leaves `>` in attributes as it is, which would end the tag early. */
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
