import type { OperatorHandle } from "../../core/operator/development.ts";

/**
 * Operators of a file that has been evaluated: the export with a given name;
 * without one the default export, the only exported Operator, or `operator`;
 * otherwise all that the file has created. A function is called; a class is not.
 *
 * @param exports Exports of the file.
 * @param options.made Operators that the file has created, in order.
 * @param options.name Name of the export.
 * @param options.argument Argument of a function that returns an operator.
 * @param options.calls Whether functions are called. Defaults to true.
 * @returns The operators; empty if there are none.
 */
export async function exportedOperators(
  exports: Readonly<Record<string, unknown>>,
  { made, name, argument, calls = true }: {
    readonly made: readonly OperatorHandle[];
    readonly name: string | undefined;
    readonly argument: unknown;
    readonly calls?: boolean | undefined;
  },
): Promise<readonly OperatorHandle[]> {
  const isOperator = (value: unknown): value is OperatorHandle =>
    made.includes(value as OperatorHandle);
  const of = async (name: string) => {
    const value = exports[name];
    const isCalled = calls && typeof value === "function" &&
      !/^class\b/.test(Function.prototype.toString.call(value));
    const result: unknown = isCalled ? await value(argument) : value;
    return isOperator(result) ? [result] : undefined;
  };
  if (name !== undefined) return await of(name) ?? [];
  const exported = [...new Set(Object.values(exports))].filter(isOperator);
  return await of("default") ??
    (exported.length === 1 ? exported : undefined) ??
    await of("operator") ?? made;
}
