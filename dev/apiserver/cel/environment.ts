import { authorizerFunctions } from "./authorizer_functions.ts";
import { CelFailure, type Problem, problemText } from "./cel_errors.ts";
import {
  BOOL,
  BYTES,
  type CelType,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  opaque,
  STRING,
  TIMESTAMP,
  typeName,
  typeOfType,
  UINT,
} from "./cel_type.ts";
import { check, type Scope } from "./checker.ts";
import { plan, type Program } from "./evaluator.ts";
import type { ExpressionNode } from "./expression.ts";
import { FORMAT_TYPE, NAMED_FORMATS } from "./format_functions.ts";
import {
  type FunctionTable,
  functionTable,
  joinTables,
} from "./function_declaration.ts";
import { LISTS } from "./list_functions.ts";
import { literalProblems } from "./literal_checks.ts";
import { CIDR_TYPE, IP_TYPE, NETWORKS, URL_TYPE } from "./network_functions.ts";
import { parse } from "./parser.ts";
import { QUANTITIES, QUANTITY_TYPE } from "./quantity_functions.ts";
import { SEMVER_TYPE, SEMVERS } from "./semver_functions.ts";
import { standardFunctions } from "./standard_functions.ts";
import { STRINGS } from "./string_functions.ts";

/** Types that expressions can name. */
const NAMED_TYPES: ReadonlyMap<string, CelType> = new Map<string, CelType>([
  ...[BOOL, BYTES, DOUBLE, INT, STRING, UINT, NULL, DURATION, TIMESTAMP]
    .map((type) => [type.name, type] as const),
  ["list", listOf(DYN)],
  ["map", mapOf(DYN, DYN)],
  ["type", typeOfType()],
  ["optional_type", opaque("optional_type")],
  ["net.IP", IP_TYPE],
  ["net.CIDR", CIDR_TYPE],
]);

let functions: FunctionTable | undefined;

/** Functions of CEL as Kubernetes 1.37 has it. */
function baseFunctions(): FunctionTable {
  return functions ??= joinTables(
    standardFunctions(),
    functionTable(
      {
        ...STRINGS,
        ...LISTS,
        ...QUANTITIES,
        ...SEMVERS,
        ...NETWORKS,
        ...NAMED_FORMATS,
      },
      {
        Quantity: QUANTITY_TYPE,
        Semver: SEMVER_TYPE,
        URL: URL_TYPE,
        IP: IP_TYPE,
        CIDR: CIDR_TYPE,
        NamedFormat: FORMAT_TYPE,
      },
    ),
    authorizerFunctions(),
  );
}

/** What expressions of one kind can use, beside CEL itself. */
export interface EnvironmentOptions {
  readonly variables?: Readonly<Record<string, CelType>>;
  readonly functions?: FunctionTable;
  /** Type of messages by name; undefined if none exists. */
  readonly type?: (name: string) => CelType | undefined;
  readonly typeText?: Scope["typeText"];
}

/** Compiled expression. */
export interface Compiled {
  readonly root: ExpressionNode;
  readonly type: CelType;
  /** Name of the type of the result. */
  readonly typeName: string;
  readonly program: Program;
}

/** Error of an expression that does not compile. */
export interface Uncompiled {
  /** Message, as kube-apiserver writes it. */
  readonly error: string;
}

/** Compiler of expressions. */
export class Environment {
  readonly #scope: Scope;

  /** Creates the compiler of expressions of one kind. */
  constructor(options: EnvironmentOptions = {}) {
    const base = baseFunctions();
    this.#scope = {
      variables: new Map(Object.entries(options.variables ?? {})),
      functions: options.functions ? joinTables(base, options.functions) : base,
      type: (name) => NAMED_TYPES.get(name) ?? options.type?.(name),
      typeText: options.typeText,
    };
  }

  /** Compiles an expression. */
  compile(source: string): Compiled | Uncompiled {
    const refused = (problems: readonly Problem[]) => ({
      error: `compilation failed: ${problemText(problems, source)}`,
    });
    const { root, problems } = parse(source);
    if (root === undefined) return refused(problems);
    const wrong = check(root, this.#scope);
    if (wrong.length > 0) return refused(wrong);
    const invalid = literalProblems(root);
    if (invalid.length > 0) return refused(invalid);
    const type = root.type ?? DYN;
    try {
      return { root, type, typeName: typeName(type), program: plan(root) };
    } catch (error) {
      if (!(error instanceof CelFailure)) throw error;
      return { error: `program instantiation failed: ${error.message}` };
    }
  }
}
