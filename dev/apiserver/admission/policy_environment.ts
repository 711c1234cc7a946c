import type { Environment } from "@marcbachmann/cel-js";
import { baseEnvironment } from "../crd/cel/cel_environment.ts";
import { type CelType, CelTypes, dynamic } from "../crd/cel/cel_types.ts";
import { evaluationErrorText } from "../crd/cel/compile_error_text.ts";
import {
  compile,
  COST_BUDGET,
  lastCost,
  OUT_OF_BUDGET,
} from "../crd/cel/rule_compiler.ts";
import type { OpenApiSchema } from "@coracle/operator/internal";
import { registerAuthorizer } from "./authorizer_functions.ts";
import type { PolicySpec } from "./hooks.ts";

const TEXT: OpenApiSchema = { type: "string" };
const TEXTS: OpenApiSchema = { type: "array", items: TEXT };
const object = (properties: Record<string, OpenApiSchema>): OpenApiSchema => ({
  type: "object",
  properties,
});
const KIND = object({ group: TEXT, version: TEXT, kind: TEXT });
const RESOURCE = object({ group: TEXT, version: TEXT, resource: TEXT });

/** Schema of the CEL variable `request`. */
const REQUEST: OpenApiSchema = object({
  kind: KIND,
  resource: RESOURCE,
  subResource: TEXT,
  requestKind: KIND,
  requestResource: RESOURCE,
  requestSubResource: TEXT,
  name: TEXT,
  namespace: TEXT,
  operation: TEXT,
  userInfo: object({
    username: TEXT,
    uid: TEXT,
    groups: TEXTS,
    extra: { type: "object", additionalProperties: TEXTS },
  }),
  dryRun: { type: "boolean" },
  options: { "x-kubernetes-int-or-string": true }, // of any type
});

/** Values of the variables of a CEL evaluation, as JSON. */
export interface PolicyValues {
  readonly object: unknown;
  readonly oldObject: unknown;
  readonly namespaceObject: unknown;
  readonly request: unknown;
  readonly authorizer: unknown;
}

/** Variables of a CEL evaluation, as CEL values. */
export type PolicyInput = Readonly<Record<string, unknown>> & {
  /** Cost that remains for the evaluations. */
  readonly budget: { left: number };
};

/** Error of a failed evaluation, with kube-apiserver's message. */
export class PolicyError extends Error {
  override readonly name = "PolicyError";
}

/** Compiled expression of a policy. */
export interface PolicyExpression {
  /** Error message if the expression does not compile. */
  readonly error: string | undefined;
  /** Type of the result. */
  readonly type: string;
  /**
   * Evaluates the expression.
   *
   * @throws {PolicyError} If the expression does not compile or its evaluation
   * fails.
   */
  evaluate(input: PolicyInput): unknown;
}

/** Receiver of the CEL function `jsonpatch.escapeKey()`. */
class JsonPatchNamespace {}

/** Compiler of the expressions of one policy or webhook. */
export class PolicyEnvironment {
  readonly #environment: Environment;
  readonly #request: CelType;
  readonly #variables: readonly (readonly [string, PolicyExpression])[];
  readonly #known: Map<string, PolicyExpression> = new Map();
  /** Class of the CEL variable `variables`, whose fields are evaluated lazily. */
  readonly #lazy: new () => object = class Variables {};

  /**
   * Creates the environment of a policy.
   *
   * @param spec Parameters and variables of the policy.
   * @param typed Schema of `object`, for type checking; undefined for any type.
   */
  constructor(
    { paramKind, variables = [] }: Pick<PolicySpec, "paramKind" | "variables">,
    typed?: {
      readonly object: OpenApiSchema;
      readonly params?: OpenApiSchema | undefined;
    },
  ) {
    const environment = baseEnvironment().clone();
    const types = new CelTypes(environment);
    const nameOf = (schema: OpenApiSchema | undefined) =>
      schema && types.typeOf(schema)?.name || "dyn";
    this.#request = types.typeOf(REQUEST) as CelType;
    environment
      .registerVariable("object", nameOf(typed?.object))
      .registerVariable("oldObject", nameOf(typed?.object))
      .registerVariable("namespaceObject", "dyn")
      .registerVariable("request", this.#request.name);
    // Type checking does not know parameters of an unknown kind.
    if (paramKind && (typed === undefined || typed.params)) {
      environment.registerVariable("params", nameOf(typed?.params));
    }
    registerAuthorizer(environment);
    const compiled: [string, PolicyExpression][] = [];
    const scope = () =>
      environment.clone().registerType("Variables", {
        ctor: this.#lazy,
        fields: Object.fromEntries(
          compiled.map(([name, { type }]) => [name, type]),
        ),
      }).registerVariable("variables", "Variables");
    // A variable can use the variables before it.
    for (const { name, expression } of variables) {
      compiled.push([
        name,
        this.#compile(expression, { environment: scope() }),
      ]);
    }
    this.#environment = scope();
    this.#variables = compiled;
  }

  /** Compiled variables of the policy by name. */
  get variables(): readonly (readonly [string, PolicyExpression])[] {
    return this.#variables;
  }

  /**
   * Compiles an expression.
   *
   * @param types Allowed types of the result; any by default.
   */
  compile(expression: string, types: readonly string[] = []): PolicyExpression {
    return this.#once(
      `${types.join()} ${expression}`,
      () => this.#compile(expression, { types }),
    );
  }

  /**
   * Compiles the expression of a mutation, whose maps may have mixed types.
   *
   * @param source Expression with maps in place of initializers.
   * @param shown Expression in messages.
   */
  compileMutation(source: string, shown: string): PolicyExpression {
    return this.#once(`mutation ${source}`, () => {
      const environment = this.#environment
        .clone({ homogeneousAggregateLiterals: false })
        .registerType("JsonPatchNamespace", {
          ctor: JsonPatchNamespace,
          fields: {},
        })
        .registerConstant(
          "jsonpatch",
          "JsonPatchNamespace",
          new JsonPatchNamespace(),
        )
        .registerFunction(
          "JsonPatchNamespace.escapeKey(string): string",
          (_: unknown, key: string) =>
            key.replaceAll("~", "~0").replaceAll("/", "~1"),
        );
      return this.#compile(source, { environment, shown });
    });
  }

  #once(key: string, make: () => PolicyExpression): PolicyExpression {
    const known = this.#known.get(key) ?? make();
    this.#known.set(key, known);
    return known;
  }

  #compile(
    source: string,
    { environment = this.#environment, types = [], shown = source }: {
      readonly environment?: Environment;
      readonly types?: readonly string[];
      readonly shown?: string;
    },
  ): PolicyExpression {
    const compiled = compile(source, environment);
    if (typeof compiled === "string") {
      return failed(`compilation failed: ${compiled}`);
    }
    const { type, program } = compiled;
    if (types.length > 0 && !types.includes(type)) {
      const wanted = types.length === 1
        ? types[0]
        : `one of [${types.join(" ")}]`;
      return failed(`must evaluate to ${wanted} but got ${type}`);
    }
    return {
      error: undefined,
      type,
      evaluate(input) {
        try {
          const value = program(input);
          input.budget.left -= lastCost();
          if (input.budget.left >= 0) return value;
        } catch (error) {
          const why = error instanceof PolicyError
            ? error.message
            : evaluationErrorText(error);
          throw new PolicyError(
            `expression '${shown}' resulted in error: ${why}`,
          );
        }
        throw new PolicyError(OUT_OF_BUDGET);
      },
    };
  }

  /** Variables for the evaluation of expressions. */
  input(values: PolicyValues, params: unknown = null): PolicyInput {
    const { object, oldObject, namespaceObject, authorizer } = values;
    const input: Record<string, unknown> & PolicyInput = {
      object: value(object),
      oldObject: value(oldObject),
      namespaceObject: value(namespaceObject),
      request: this.#request.convert(values.request),
      params: value(params),
      authorizer,
      budget: { left: COST_BUDGET },
    };
    const variables = new this.#lazy();
    for (const [name, expression] of this.#variables) {
      let known: { readonly value: unknown } | undefined;
      Object.defineProperty(variables, name, {
        enumerable: true,
        get() {
          try {
            known ??= { value: expression.evaluate(input) };
          } catch (error) {
            const why = (error as Error).message
              .replace(/^expression '[^]*' resulted in error: /, "");
            throw new PolicyError(
              `composited variable "${name}" fails to evaluate: ${why}`,
            );
          }
          return known.value;
        },
      });
    }
    input.variables = variables;
    return input;
  }
}

function failed(error: string): PolicyExpression {
  return {
    error,
    type: "dyn",
    evaluate() {
      throw new PolicyError(`compilation error: ${error}`);
    },
  };
}

function value(json: unknown): unknown {
  return json === undefined ? null : dynamic(json);
}
