import type { OperatorHandle } from "@coracle/operator/core";
import { nearestName, typeText } from "@coracle/operator/internal";

export type Exports = Readonly<Record<string, unknown>>;

/** Operators of a file. */
export interface FoundOperators {
  /** The operators; empty if there are none. */
  readonly operators: readonly OperatorHandle[];
  /** What the file has instead of an operator, for an error message. */
  readonly received: string;
}

/**
 * Operators of a file that has been evaluated: the export with a given name;
 * without one the default export, the only exported Operator, `operator`, or the
 * only function whose name ends so, such as `createOperator`; otherwise all that the
 * file has created. A function is called; a class is not.
 *
 * @param exports Exports of the file.
 * @param options.made Operators that the file has created, in order.
 * @param options.name Name of the export.
 * @param options.argument Argument of a function that returns an operator.
 * @param options.calls Whether functions are called. Defaults to true.
 */
export async function exportedOperators(
  exports: Exports,
  { made, name, argument, calls = true }: {
    readonly made: readonly OperatorHandle[];
    readonly name: string | undefined;
    readonly argument: unknown;
    readonly calls?: boolean | undefined;
  },
): Promise<FoundOperators> {
  const isOperator = (value: unknown): value is OperatorHandle =>
    made.includes(value as OperatorHandle);
  const returned: string[] = [];
  const isCallable = (
    value: unknown,
  ): value is (argument: unknown) => unknown =>
    typeof value === "function" &&
    !/^class\b/.test(Function.prototype.toString.call(value));
  const of = async (name: string) => {
    const value = exports[name];
    const isCalled = calls && isCallable(value);
    const result = isCalled ? await value(argument) : value;
    if (isOperator(result)) return [result];
    if (isCalled) returned.push(`${typeText(result)} from ${name}()`);
    return undefined;
  };
  if (name !== undefined) {
    const operators = await of(name) ?? [];
    const [received = namedText(name, exports)] = returned;
    return { operators, received };
  }
  const exported = [...new Set(Object.values(exports))].filter(isOperator);
  const [maker, other] = Object.keys(exports).filter((name) =>
    name.endsWith("Operator") && isCallable(exports[name])
  );
  const operators = await of("default") ??
    (exported.length === 1 ? exported : undefined) ??
    await of("operator") ??
    // What the file has created by itself is not created again.
    (maker !== undefined && other === undefined && made.length === 0
      ? await of(maker)
      : undefined) ??
    made;
  const received = [exportsText(exports), ...returned].join(", and ");
  return { operators, received };
}

/** Text of an export that is not called, or does not exist. */
function namedText(name: string, exports: Exports): string {
  if (name in exports) return `${name}, ${typeText(exports[name])}`;
  const nearest = nearestName(name, Object.keys(exports));
  return `${name}, of ${exportsText(exports)}${
    nearest === undefined ? "" : ` (did you mean "${nearest}"?)`
  }`;
}

/** Maximum number of exports that an error message names. */
const MAX_NAMES = 5;

/** Exports of a file, for an error message. */
export function exportsText(exports: Exports): string {
  const names = Object.keys(exports);
  if (names.length === 0) return "no exports";
  const more = names.length - MAX_NAMES;
  const named = names.slice(0, MAX_NAMES).join(", ");
  return `exports ${named}${more > 0 ? ` and ${more} more` : ""}`;
}
