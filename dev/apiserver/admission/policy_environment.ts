import { CelError } from "../cel/cel_errors.ts";
import {
  BOOL,
  type CelType,
  DYN,
  INT,
  listOf,
  mapOf,
  message,
  opaque,
  STRING,
  struct,
  TIMESTAMP,
  typeText,
} from "../cel/cel_type.ts";
import { Environment, type EnvironmentOptions } from "../cel/environment.ts";
import type { Program } from "../cel/evaluator.ts";
import type { CelMap } from "../cel/values.ts";
import {
  type FunctionTable,
  functionTable,
} from "../cel/function_declaration.ts";
import {
  CALL_LIMIT,
  COST_BUDGET,
  OUT_OF_BUDGET,
} from "../crd/cel/rule_compiler.ts";
import { dynamic, SchemaTypes } from "../crd/cel/schema_values.ts";
import type { OpenApiSchema } from "@coracle/operator/internal";
import {
  type Authorizer,
  AUTHORIZER_TYPE,
  RESOURCE_CHECK_TYPE,
} from "../cel/authorizer_functions.ts";
import type { PolicySpec } from "./hooks.ts";

const TEXTS = listOf(STRING);
const LABELS = mapOf(STRING, STRING);
const KIND = message("kubernetes.GroupVersionKind", {
  group: STRING,
  version: STRING,
  kind: STRING,
});
const RESOURCE = message("kubernetes.GroupVersionResource", {
  group: STRING,
  version: STRING,
  resource: STRING,
});

/** Type of the CEL variable `request`. */
const REQUEST = message("kubernetes.AdmissionRequest", {
  kind: KIND,
  resource: RESOURCE,
  subResource: STRING,
  requestKind: KIND,
  requestResource: RESOURCE,
  requestSubResource: STRING,
  name: STRING,
  namespace: STRING,
  operation: STRING,
  userInfo: message("kubernetes.UserInfo", {
    username: STRING,
    uid: STRING,
    groups: TEXTS,
    extra: mapOf(STRING, TEXTS),
  }),
  dryRun: BOOL,
  options: DYN,
});

/** Type of the CEL variable `namespaceObject`, which lacks some fields. */
const NAMESPACE = message("kubernetes.Namespace", {
  metadata: message("kubernetes.NamespaceMetadata", {
    name: STRING,
    generateName: STRING,
    namespace: STRING,
    labels: LABELS,
    annotations: LABELS,
    UID: STRING,
    creationTimestamp: TIMESTAMP,
    deletionGracePeriodSeconds: INT,
    deletionTimestamp: TIMESTAMP,
    generation: INT,
    resourceVersion: STRING,
    finalizers: TEXTS,
  }),
  spec: message("kubernetes.NamespaceSpec", { finalizers: TEXTS }),
  status: message("kubernetes.NamespaceStatus", {
    conditions: listOf(message("kubernetes.NamespaceCondition", {
      status: STRING,
      type: STRING,
      lastTransitionTime: TIMESTAMP,
      message: STRING,
      reason: STRING,
    })),
    phase: STRING,
  }),
});

const PATCH_FIELDS: ReadonlyMap<string, CelType> = new Map([
  ["op", STRING],
  ["from", STRING],
  ["path", STRING],
  ["value", DYN],
]);

/** Type of the operations of a JSON patch; other fields have no type upstream. */
const JSON_PATCH = struct(
  "JSONPatch",
  (name) => PATCH_FIELDS.get(name) ?? opaque(""),
);

/** Types of initializers: `JSONPatch`, and `Object` with the paths of its fields. */
function mutationType(name: string): CelType | undefined {
  if (name === "JSONPatch") return JSON_PATCH;
  return name === "Object" || name.startsWith("Object.")
    ? struct(name, () => DYN)
    : undefined;
}

let mutations: FunctionTable | undefined;

/** Functions of mutations, beside those of policies. */
function mutationFunctions(): FunctionTable {
  return mutations ??= functionTable({
    "jsonpatch.escapeKey(string): string": (key: string) =>
      key.replaceAll("~", "~0").replaceAll("/", "~1"),
  });
}

/** Values of the variables of a CEL evaluation, as JSON. */
export interface PolicyValues {
  readonly object: unknown;
  readonly oldObject: unknown;
  readonly namespaceObject: unknown;
  readonly request: unknown;
  readonly authorizer: Authorizer;
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
  readonly celType: CelType;
  /** Name of the type of the result. */
  readonly typeName: string;
  /** Program of the expression. */
  readonly program: Program;
  /**
   * Evaluates the expression.
   *
   * @throws {PolicyError} If the expression does not compile or its evaluation
   * fails.
   */
  evaluate(input: PolicyInput): unknown;
}

/** Compiler of the expressions of one policy or webhook. */
export class PolicyEnvironment {
  readonly #options: EnvironmentOptions;
  readonly #environment: Environment;
  readonly #variables: readonly (readonly [string, PolicyExpression])[];
  readonly #known: Map<string, PolicyExpression> = new Map();
  #mutations: Environment | undefined;

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
    const types = new SchemaTypes();
    const typeOf = (schema: OpenApiSchema | undefined) =>
      schema && types.of(schema)?.type || DYN;
    // Type checking does not know parameters of an unknown kind.
    const hasParams = paramKind && (typed === undefined || typed.params);
    const base = {
      object: typeOf(typed?.object),
      oldObject: typeOf(typed?.object),
      namespaceObject: NAMESPACE,
      request: REQUEST,
      ...(hasParams && { params: typeOf(typed?.params) }),
      authorizer: AUTHORIZER_TYPE,
      "authorizer.requestResource": RESOURCE_CHECK_TYPE,
    };
    const fields: Record<string, CelType> = {};
    // A variable can use the variables before it.
    const options = (): EnvironmentOptions => ({
      variables: {
        ...base,
        variables: message("kubernetes.variables", { ...fields }),
      },
      typeText: (type) => typeText(type).replaceAll(/\bobject \d+/g, "object"),
    });
    this.#variables = variables.map(({ name, expression }) => {
      const compiled = this.#compile(expression, {
        environment: new Environment(options()),
      });
      fields[name] = variableType(compiled.celType);
      return [name, compiled] as const;
    });
    this.#options = options();
    this.#environment = new Environment(this.#options);
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
   * Compiles the expression of a mutation, which can use initializers.
   *
   * @param types Allowed types of the result; any if there are none.
   */
  compileMutation(
    expression: string,
    types: readonly string[],
  ): PolicyExpression {
    return this.#once(`mutation ${types.join()} ${expression}`, () => {
      const environment = this.#mutations ??= new Environment({
        ...this.#options,
        functions: mutationFunctions(),
        type: mutationType,
      });
      return this.#compile(expression, { environment, types });
    });
  }

  #once(key: string, make: () => PolicyExpression): PolicyExpression {
    const known = this.#known.get(key) ?? make();
    this.#known.set(key, known);
    return known;
  }

  #compile(
    source: string,
    { environment = this.#environment, types = [] }: {
      readonly environment?: Environment;
      readonly types?: readonly string[];
    },
  ): PolicyExpression {
    const compiled = environment.compile(source);
    if ("error" in compiled) return failed(compiled.error);
    const { typeName, type, program } = compiled;
    if (types.length > 0 && !types.includes(typeName)) {
      const wanted = types.length === 1
        ? types[0]
        : `one of [${types.join(" ")}]`;
      return failed(`must evaluate to ${wanted} but got ${typeName}`);
    }
    return {
      error: undefined,
      celType: type,
      typeName,
      program,
      evaluate(input) {
        const { value, cost } = program(input, CALL_LIMIT);
        input.budget.left -= cost;
        if (value instanceof CelError) {
          throw new PolicyError(
            `expression '${source}' resulted in error: ${value.message}`,
          );
        }
        if (input.budget.left < 0) throw new PolicyError(OUT_OF_BUDGET);
        return value;
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
      request: value(values.request),
      params: value(params),
      authorizer,
      "authorizer.requestResource": authorizer.requestResource,
      budget: { left: COST_BUDGET },
    };
    input.variables = new LazyVariables(this.#variables, input);
    return input;
  }
}

/** Type of a variable as other expressions see it: that of plain values, or any. */
function variableType(type: CelType): CelType {
  switch (type.kind) {
    case "list":
    case "map":
      return { ...type, params: type.params.map(variableType) };
    case "struct":
    case "opaque":
    case "type":
    case "param":
    case "error":
      return DYN;
    default:
      return type;
  }
}

/** Value of the CEL variable `variables`, whose fields are evaluated once each. */
class LazyVariables implements CelMap {
  readonly #variables: ReadonlyMap<string, PolicyExpression>;
  readonly #input: PolicyInput;
  readonly #known: Map<string, unknown> = new Map();

  constructor(
    variables: readonly (readonly [string, PolicyExpression])[],
    input: PolicyInput,
  ) {
    this.#variables = new Map(variables);
    this.#input = input;
  }

  get size(): number {
    return this.#variables.size;
  }

  keys(): readonly unknown[] {
    return [...this.#variables.keys()];
  }

  find(key: unknown): unknown {
    const name = String(key);
    const expression = this.#variables.get(name);
    if (expression === undefined) return undefined;
    if (!this.#known.has(name)) {
      this.#known.set(name, this.#evaluate(name, expression));
    }
    return this.#known.get(name);
  }

  #evaluate(name: string, expression: PolicyExpression): unknown {
    try {
      return expression.evaluate(this.#input);
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error;
      const why = error.message
        .replace(/^expression '[^]*' resulted in error: /, "");
      return new CelError(
        `composited variable "${name}" fails to evaluate: ${why}`,
      );
    }
  }
}

function failed(error: string): PolicyExpression {
  return {
    error,
    celType: DYN,
    typeName: "dyn",
    program: () => ({ value: new CelError(error), cost: 0, exceeded: false }),
    evaluate() {
      throw new PolicyError(`compilation error: ${error}`);
    },
  };
}

function value(json: unknown): unknown {
  return json === undefined ? null : dynamic(json);
}
