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
 * Parses one YAML or JSON document from outside. Its number of values, its depth
 * and its aliases are bounded, and the checks of the parser that take quadratic
 * time (duplicate keys, positions of errors) are left out or made here.
 *
 * @throws {RangeError} If the text has too many values.
 */
export async function parseYaml(
  text: string,
  { subject, refuse }: YamlErrors,
): Promise<unknown> {
  const separators = text.match(/[\n,]/g)?.length ?? 0;
  if (separators > MAX_SEPARATORS) {
    throw new RangeError(
      `Cannot read ${subject}: it must have at most ${MAX_SEPARATORS} line breaks and commas: received ${separators}`,
    );
  }
  const { isScalar, LineCounter, parseDocument, visit } = await loadModule(
    import("yaml"),
  );
  const lineCounter = new LineCounter();
  const fail = (code: string, offset?: number, message = code) => {
    const { line, col } = lineCounter.linePos(offset ?? 0);
    const at = offset === undefined ? "" : ` at line ${line}, column ${col}`;
    return refuse({ code, message, at });
  };
  let document: ReturnType<typeof parseDocument>;
  try {
    document = parseDocument(text, {
      logLevel: "error",
      prettyErrors: false,
      uniqueKeys: false,
      stringKeys: true,
      lineCounter,
    });
  } catch (error) {
    // The parser is recursive; what else it throws has another cause.
    throw error instanceof RangeError ? fail("too many levels") : error;
  }
  const [fault] = document.errors;
  if (fault !== undefined) throw fail(fault.code, fault.pos[0], fault.message);
  visit(document, {
    Map(_, { items }) {
      const names = new Set<string>();
      for (const { key } of items) {
        const name = isScalar(key) ? String(key.value) : undefined;
        if (name === undefined) continue;
        if (names.has(name)) {
          throw fail("DUPLICATE_KEY", (key as { range?: number[] }).range?.[0]);
        }
        names.add(name);
      }
    },
  });
  try {
    return document.toJS();
  } catch {
    throw fail("a syntax error");
  }
}
