import { callCost } from "./actual_costs.ts";
import { CelError, CelFailure, NO_SUCH_OVERLOAD } from "./cel_errors.ts";
import { charge, type Step } from "./evaluation_step.ts";
import { accepts, type Overload } from "./function_declaration.ts";
import { typeNameOf } from "./values.ts";

/** Whether a function is the same for all types of arguments. */
export function isOne(name: string): boolean {
  return !/^[a-zA-Z]/.test(name) || name === "size" || name === "sort";
}

/**
 * Step of a call, which fails if an argument does.
 *
 * @param inOrder Whether arguments after one that fails are not evaluated.
 */
export function called(
  name: string,
  overloads: readonly Overload[],
  steps: readonly Step[],
  call: (args: readonly unknown[]) => unknown,
  inOrder: boolean = steps.length > 2,
): Step {
  return (run) => {
    const args: unknown[] = [];
    let error: CelError | undefined;
    for (const step of steps) {
      const value = step(run);
      args.push(value);
      if (!(value instanceof CelError)) continue;
      error ??= value;
      // What follows is not evaluated, and the call costs nothing then.
      if (inOrder && args.length < steps.length) return error;
    }
    const result = error ?? call(args);
    charge(run, callCost(name, overloads, args, result));
    return result;
  };
}

/** Types of first operands with which an operator reports its errors itself. */
const OPERANDS: Readonly<Record<string, string>> = {
  "_+_": "bytes double int uint list",
  "_-_": "double int uint",
  "_*_": "double int uint",
  "_/_": "double int uint",
  "_%_": "int uint",
  "-_": "double int bool",
  "_<_": "bool bytes double int uint",
  "_<=_": "bool bytes double int uint",
  "_>_": "bool bytes double int uint",
  "_>=_": "bool bytes double int uint",
};

/** Types whose values are receivers of methods in cel-go. */
const RECEIVERS: ReadonlySet<string> = new Set([
  "string",
  "google.protobuf.Duration",
  "google.protobuf.Timestamp",
]);

/** Whether the error of a call with wrong types does not name the function. */
function isAnonymous(name: string, type: string): boolean {
  const operands = Object.hasOwn(OPERANDS, name) ? OPERANDS[name] : undefined;
  return operands === undefined
    ? !/^[a-zA-Z]/.test(name) || ANONYMOUS.has(name)
    : RECEIVERS.has(type) || operands.split(" ").includes(type);
}

/** Functions whose errors about types do not name them. */
const ANONYMOUS: ReadonlySet<string> = new Set([
  "contains",
  "endsWith",
  "matches",
  "startsWith",
]);

/** Calls the overload that fits the values of the arguments. */
export function invoke(
  name: string,
  overloads: readonly Overload[],
  args: readonly unknown[],
): unknown {
  const fitting = overloads.find(({ params }) =>
    params.every((param, index) => accepts(param, args[index]))
  );
  if (fitting === undefined) {
    if (isAnonymous(name, typeNameOf(args[0]))) return NO_SUCH_OVERLOAD;
    const types = /^[a-zA-Z]/.test(name) && name !== "size" && name !== "sort"
      ? `(${args.map(typeNameOf).join(", ")})`
      : "";
    return new CelError(`no such overload: ${name}${types}`);
  }
  try {
    return fitting.run(...args as never[]);
  } catch (error) {
    if (error instanceof CelFailure) return new CelError(error.message);
    throw error;
  }
}
