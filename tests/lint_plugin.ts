/**
 * Rules of this project for `deno lint`, which an editor shows at the line:
 * import direction, literal dynamic imports and the form of error messages. They
 * apply to shipped files.
 *
 * @module
 */

import { relative } from "node:path";
import process from "node:process";
import { importFault } from "./package/architecture.ts";

/** Part of a syntax node that the rules use. */
interface Node {
  readonly type: string;
  readonly source?: Node | null;
  readonly value?: unknown;
  readonly name?: string;
  readonly callee?: Node;
  readonly arguments?: readonly Node[];
  readonly quasis?: readonly { readonly cooked: string }[];
}

/** Context that the linter gives to a rule for one file. */
interface RuleContext {
  readonly filename: string;
  report(finding: { readonly node: Node; readonly message: string }): void;
}

interface Rule {
  create(context: RuleContext): Record<string, (node: Node) => void>;
}

const SHIPPED_REGEXP = /^(?:mod\.ts|(?:core|sources|workflows|dev)\/.*)$/;
const ERROR_CLASS_REGEXP = /^(?:Error|TypeError|RangeError|SyntaxError)$/;
const MESSAGE_REGEXP = /^(?:Cannot|\0)[^]*[^.]$/;
/** A received value that is described instead of shown. */
const NO_VALUE_REGEXP =
  /: received (?:an?|one|no|the|both|neither|nothing|none|its?)\b[^\0]*$/;

/** Limits a rule to shipped files and gives it their paths in the project. */
function shippedRule(
  create: (
    context: RuleContext,
    file: string,
  ) => Record<string, (node: Node) => void>,
): Rule {
  return {
    create(context) {
      const file = relative(process.cwd(), context.filename)
        .replaceAll("\\", "/");
      return SHIPPED_REGEXP.test(file) ? create(context, file) : {};
    },
  };
}

const importDirection = shippedRule((context, file) => {
  const check = (node: Node) => {
    const specifier = node.source?.value;
    if (typeof specifier !== "string") return;
    const message = importFault(file, specifier);
    if (message !== undefined) context.report({ node, message });
  };
  return {
    ImportDeclaration: check,
    ExportNamedDeclaration: check,
    ExportAllDeclaration: check,
    ImportExpression: check,
  };
});

/** Refuses computed imports: they pass every publishing check and fail for users. */
const literalImport = shippedRule((context) => ({
  ImportExpression(node) {
    if (typeof node.source?.value === "string") return;
    context.report({ node, message: "Import a literal path" });
  },
}));

const errorMessage = shippedRule((context) => ({
  NewExpression(node) {
    if (!ERROR_CLASS_REGEXP.test(node.callee?.name ?? "")) return;
    const [message] = node.arguments ?? [];
    const text = message === undefined ? undefined : textOf(message);
    if (
      text === undefined ||
      (MESSAGE_REGEXP.test(text) && !NO_VALUE_REGEXP.test(text))
    ) return;
    context.report({
      node,
      message:
        'Write it as "Cannot <action>: <why>", and ": received <value>" only where there is one, without a full stop',
    });
  },
}));

/** Text of a literal message; its holes are NUL characters. */
function textOf(node: Node): string | undefined {
  if (typeof node.value === "string") return node.value;
  return node.quasis?.map((quasi) => quasi.cooked).join("\0");
}

/** Plugin that `deno lint` loads. */
const plugin: { readonly name: string; readonly rules: Record<string, Rule> } =
  {
    name: "coracle",
    rules: {
      "import-direction": importDirection,
      "literal-import": literalImport,
      "error-message": errorMessage,
    },
  };

export default plugin;
