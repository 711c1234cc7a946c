import type { Document } from "yaml";
import { loadModule } from "../clock.ts";

/** What the YAML parser refuses; its message may quote the text. */
export interface YamlFault {
  /** Code, such as `DUPLICATE_KEY`. */
  readonly code: string;
  readonly message: string;
  /** Place in the text, for errors: ` at line 1, column 8`, or nothing. */
  readonly at: string;
}

export interface YamlErrors {
  /** Name of the text, such as `kubeconfig ~/.kube/config`. */
  readonly subject: string;
  /** Creates the error for a text that is no YAML. */
  readonly refuse: (fault: YamlFault) => Error;
}

/** Maximum number of line breaks and commas, as parsing is slow per value. */
const MAX_SEPARATORS = 200_000;

/**
 * Parses one YAML or JSON document from outside as Kubernetes does: by YAML 1.1, where
 * `0644` is octal, `yes` is true and `<<` merges maps, without its times and its numbers
 * to the base of 60. Its number of values, its depth and its aliases are bounded, and
 * the checks of the parser that take quadratic time (duplicate keys, positions of
 * errors) are left out or made here.
 *
 * @throws {RangeError} If the text has too many values.
 */
export async function parseYaml(
  text: string,
  errors: YamlErrors,
): Promise<unknown> {
  const [value] = await documentsOf(
    text,
    errors,
    ({ parseDocument }, options) => [parseDocument(text, options)],
  );
  return value;
}

/**
 * Parses the YAML or JSON documents of a text, as {@linkcode parseYaml} does. A number
 * that would be rounded, or that JSON does not have, is refused.
 *
 * @throws {RangeError} If the text has too many values.
 */
export async function parseManifests(
  text: string,
  errors: YamlErrors,
): Promise<unknown[]> {
  return await documentsOf(
    text,
    { ...errors, isJson: true },
    ({ parseAllDocuments }, options) => parseAllDocuments(text, options),
  );
}

/** Tags of YAML 1.1 whose values are no JSON. */
const OTHER_TAGS = /:(?:timestamp|binary|omap|pairs|set)$/;

/** Pattern of integers in the text. */
const INTEGER = /^[-+]?(?:[\d_]+|0x[\da-f_]+)$/i;

type Yaml = typeof import("yaml");

/** Values of the documents of a text. */
async function documentsOf(
  text: string,
  { subject, refuse, isJson }: YamlErrors & {
    /** Whether what JSON cannot say is refused. */
    readonly isJson?: boolean;
  },
  parse: (
    yaml: Yaml,
    options: NonNullable<Parameters<Yaml["parseDocument"]>[1]>,
  ) => readonly Document.Parsed[],
): Promise<unknown[]> {
  const separators = text.match(/[\n,]/g)?.length ?? 0;
  if (separators > MAX_SEPARATORS) {
    throw new RangeError(
      `Cannot read ${subject}: it must have at most ${MAX_SEPARATORS} line breaks and commas: received ${separators}`,
    );
  }
  const yaml = await loadModule(import("yaml"));
  const lineCounter = new yaml.LineCounter();
  const fail = (code: string, offset?: number, message = code) => {
    const { line, col } = lineCounter.linePos(offset ?? 0);
    const at = offset === undefined ? "" : ` at line ${line}, column ${col}`;
    return refuse({ code, message, at });
  };
  let documents: readonly Document.Parsed[];
  try {
    documents = parse(yaml, {
      logLevel: "error",
      prettyErrors: false,
      uniqueKeys: false,
      stringKeys: true,
      lineCounter,
      version: "1.1",
      customTags: (tags) =>
        tags.filter((tag) =>
          typeof tag === "string" || !OTHER_TAGS.test(tag.tag) &&
            !("format" in tag && tag.format === "TIME")
        ),
    });
  } catch (error) {
    // The parser is recursive; what else it throws has another cause.
    throw error instanceof RangeError ? fail("too many levels") : error;
  }
  return documents.map((document) => {
    const [fault] = document.errors;
    if (fault !== undefined) {
      throw fail(fault.code, fault.pos[0], fault.message);
    }
    yaml.visit(document, {
      Map(_, { items }) {
        const names = new Set<string>();
        for (const { key } of items) {
          const name = yaml.isScalar(key) ? String(key.value) : undefined;
          if (name === undefined) continue;
          if (names.has(name)) {
            const { range } = key as { range?: number[] };
            throw fail("DUPLICATE_KEY", range?.[0], "Map keys must be unique");
          }
          names.add(name);
        }
      },
      Alias(_, { source, range }, path) {
        const isWithin = isJson &&
          path.some((one) =>
            yaml.isNode(one) && "anchor" in one && one.anchor === source
          );
        if (isWithin) throw fail("an alias within its anchor", range?.[0]);
      },
      Scalar(_, { value, source = "", range }) {
        if (!isJson || typeof value !== "number") return;
        const isRounded = !Number.isSafeInteger(value) && INTEGER.test(source);
        if (Number.isFinite(value) && !isRounded) return;
        throw fail("a number that JSON or JavaScript lacks", range?.[0]);
      },
    });
    try {
      return document.toJS();
    } catch {
      throw fail("an alias without its anchor, or too many");
    }
  });
}
