/** A condition in CEL, compiled. */
export type CelPredicate = (
  variables: Readonly<Record<string, unknown>>,
) => boolean;

/** How long an expression may be, in UTF-16 code units. */
const LONGEST_EXPRESSION = 10_000;

/**
 * Compiles expressions of the Common Expression Language, as people write them
 * into custom resources. Whatever is among the variables of a run can be named;
 * what is not there is an error unless asked for with `has(…)`.
 *
 * The library for it is loaded by the first call, which takes some tens of
 * milliseconds.
 *
 * @param sources The expressions; each must come to true or false.
 * @throws {SyntaxError} If an expression is too long or cannot be read.
 */
export async function celPredicates(
  sources: readonly string[],
): Promise<readonly CelPredicate[]> {
  const { Environment } = await import("@marcbachmann/cel-js");
  const environment = new Environment({ unlistedVariablesAreDyn: true });
  return sources.map((source) => {
    if (source.length > LONGEST_EXPRESSION) {
      throw new SyntaxError(
        `Cannot compile a CEL expression: it must be at most ${LONGEST_EXPRESSION} characters long: received ${source.length}`,
      );
    }
    const program = compile(environment, source);
    return (variables) => {
      const value = program(inCel(variables));
      if (typeof value === "boolean") return value;
      throw new TypeError(
        `Cannot decide by a CEL expression: it must come to true or false: received ${typeof value} from ${
          JSON.stringify(source)
        }`,
      );
    };
  });
}

type Environment = import("@marcbachmann/cel-js").Environment;

function compile(
  environment: Environment,
  source: string,
): (variables: Record<string, unknown>) => unknown {
  try {
    return environment.parse(source);
  } catch (error) {
    throw new SyntaxError(
      `Cannot compile a CEL expression: ${
        error instanceof Error ? error.message.split("\n")[0] : error
      }: received ${JSON.stringify(source.slice(0, 200))}`,
      { cause: error },
    );
  }
}

/** The value as CEL has it: whole numbers are integers there. */
function inCel(
  variables: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return whole(variables) as Record<string, unknown>;
}

function whole(value: unknown): unknown {
  if (typeof value === "number") {
    return Number.isSafeInteger(value) ? BigInt(value) : value;
  }
  if (Array.isArray(value)) return value.map(whole);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, whole(inner)]),
  );
}
