import { type ByteRange, parseRange } from "./byte_range.ts";
import { JsonCursor, OPEN_BRACE, OPEN_BRACKET } from "./json_cursor.ts";

/**
 * Reader of one field of objects as JSON bytes, without parsing the rest.
 */
export class FieldReader {
  /** Path of the field. */
  readonly path: string;
  readonly #steps: readonly PathStep[];
  readonly #cursor: JsonCursor = new JsonCursor("a field");

  /**
   * Creates a reader of a field.
   *
   * @param path Field path, such as `spec.nodeName` or `spec.containers[0].image`.
   * @throws {SyntaxError} If it is not a field path.
   * @throws {RangeError} If it selects several fields, as with `[*]`.
   */
  constructor(path: string) {
    this.path = path;
    this.#steps = parseFieldPath(path);
    if (this.#steps.some((step) => "each" in step || "except" in step)) {
      throw new RangeError(
        `Cannot read a field: its path must name one field: received "${path}"`,
      );
    }
  }

  /**
   * JSON of the field; undefined if the object does not have it. Of a repeated key
   * the last one counts.
   *
   * @throws {SyntaxError} If the bytes before the field are not well-formed.
   */
  range(source: ByteRange): ByteRange | undefined {
    let found: ByteRange | undefined = source;
    for (const step of this.#steps) {
      if (found === undefined) break;
      found = "key" in step
        ? this.#member(found, step.key)
        : "index" in step
        ? this.#element(found, step.index)
        : undefined;
    }
    return found;
  }

  /** Value of the field; undefined if the object does not have it. */
  value(source: ByteRange): unknown {
    const range = this.range(source);
    return range === undefined ? undefined : parseRange(range);
  }

  #member(source: ByteRange, key: string): ByteRange | undefined {
    const cursor = this.#cursor;
    const { bytes } = source;
    cursor.reset(source);
    let found: ByteRange | undefined;
    if (cursor.peek() !== OPEN_BRACE) return undefined;
    for (let more = cursor.enterObject(); more; more = cursor.nextMember()) {
      const matches = cursor.stringEquals(key);
      const start = cursor.position;
      cursor.skipStructure();
      if (matches) found = { bytes, start, end: cursor.position };
    }
    return found;
  }

  #element(source: ByteRange, index: number): ByteRange | undefined {
    const cursor = this.#cursor;
    cursor.reset(source);
    if (cursor.peek() !== OPEN_BRACKET) return undefined;
    let at = 0;
    for (let more = cursor.enterArray(); more; more = cursor.nextElement()) {
      const start = cursor.position;
      cursor.skipStructure();
      if (at === index) {
        return { bytes: source.bytes, start, end: cursor.position };
      }
      at++;
    }
    return undefined;
  }
}

/** Step of a field path: into a member, an element, or several of them. */
export type PathStep =
  | { readonly key: string }
  | { readonly index: number }
  | { readonly each: true }
  /** All elements except those whose field has one of these values. */
  | { readonly field: string; readonly except: readonly string[] };

const NAME = String.raw`[^.[\]"\s]+`;
const QUOTED = String.raw`"(?:[^"\\]|\\.)*"`;
/**
 * Regular expression of a step: `name`, `["any name"]`, `[7]`, `[*]` or
 * `[name!="a","b"]`. A name needs a dot before it except in the first step. Names
 * without quotes contain no dots, brackets, quotes or spaces.
 */
const STEP_REGEXP = new RegExp(
  String
    .raw`(?<dot>\.)?(?<name>${NAME})|\[(?:(?<quoted>${QUOTED})|(?<index>\d+)|(?<each>\*)|(?<field>${NAME}?)!=(?<except>${QUOTED}(?:,${QUOTED})*))\]`,
  "y",
);

/**
 * Parses a field path such as `spec.replicas`, `status.conditions[*].lastProbeTime`,
 * `spec.containers[0].image`, `metadata.annotations["example.com/a.b"]` or
 * `metadata.managedFields[manager!="page"]`.
 *
 * @throws {SyntaxError} If it is not a field path.
 */
export function parseFieldPath(path: string): PathStep[] {
  const steps: PathStep[] = [];
  let position = 0;
  while (position < path.length) {
    STEP_REGEXP.lastIndex = position;
    const step = readStep(STEP_REGEXP.exec(path)?.groups, steps.length === 0);
    if (step === undefined) break;
    steps.push(step);
    position = STEP_REGEXP.lastIndex;
  }
  if (position < path.length || steps.length === 0) {
    throw new SyntaxError(
      `Cannot read a field path: it must look like spec.list[*]["a.b"]: received ${
        JSON.stringify(path)
      }`,
    );
  }
  return steps;
}

function readStep(
  groups: Record<string, string | undefined> | undefined,
  first: boolean,
): PathStep | undefined {
  if (groups === undefined) return undefined;
  const { dot, name, quoted, index, each, field, except } = groups;
  if (each !== undefined) return { each: true };
  if (index !== undefined) return { index: Number(index) };
  try {
    if (quoted !== undefined) return { key: JSON.parse(quoted) };
    if (field !== undefined) {
      return { field, except: JSON.parse(`[${except}]`) };
    }
  } catch {
    return undefined;
  }
  return name === undefined || (dot === undefined) !== first
    ? undefined
    : { key: name };
}
