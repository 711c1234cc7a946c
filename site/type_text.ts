/**
 * TypeScript text of the types and declarations that `deno doc --json` prints.
 *
 * @module
 */

/** Node of the JSON; its fields depend on its kind. */
// deno-lint-ignore no-explicit-any
export type DocNode = any;

/** Text of a type. */
export function typeText(type: DocNode): string {
  const value = type?.value;
  switch (type?.kind) {
    case undefined:
      return "unknown";
    case "keyword":
      return value;
    case "literal":
      return literalText(type);
    case "typeRef":
      return value.typeName + argumentsText(value.typeParams);
    case "union":
      return value.map(typeText).join(" | ");
    case "intersection":
      return value.map(typeText).join(" & ");
    case "array":
      return `${typeText(value)}[]`;
    case "tuple":
      return `[${value.map(typeText).join(", ")}]`;
    case "parenthesized":
      return `(${typeText(value)})`;
    case "rest":
      return `...${typeText(value)}`;
    case "optional":
      return `${typeText(value)}?`;
    case "typeOperator":
      return `${value.operator} ${typeText(value.tsType)}`;
    case "typeQuery":
      return `typeof ${value}`;
    case "this":
      return "this";
    case "infer":
      return `infer ${typeParameter(value.typeParam)}`;
    case "indexedAccess":
      return `${typeText(value.objType)}[${typeText(value.indexType)}]`;
    case "conditional":
      return `${typeText(value.checkType)} extends ${
        typeText(value.extendsType)
      } ? ${typeText(value.trueType)} : ${typeText(value.falseType)}`;
    case "mapped":
      return mappedText(value);
    case "typePredicate":
      return `${value.asserts ? "asserts " : ""}${
        value.param.name ?? "this"
      } is ${typeText(value.type)}`;
    case "fnOrConstructor":
      return `${value.constructor ? "new " : ""}${
        typeParameters(value.typeParams)
      }(${value.params.map(parameter).join(", ")}) => ${
        typeText(value.tsType)
      }`;
    case "importType":
      return `import("${value.specifier}").${value.qualifier ?? ""}`;
    case "typeLiteral": {
      const members = memberTexts(value);
      return members.length === 0 ? "{}" : `{ ${members.join("; ")} }`;
    }
    default:
      throw new Error(
        `Cannot print a type: its kind is unknown: received ${type.kind}`,
      );
  }
}

function literalText({ value }: DocNode): string {
  switch (value.kind) {
    case "string":
      return JSON.stringify(value.string);
    case "template":
      return `\`${
        value.tsTypes.map((part: DocNode) =>
          part.kind === "literal" && part.value.kind === "string"
            ? part.value.string
            : `\${${typeText(part)}}`
        ).join("")
      }\``;
    default:
      return String(value[value.kind]);
  }
}

function mappedText(value: DocNode): string {
  const { name, constraint } = value.typeParam;
  const as = value.nameType ? ` as ${typeText(value.nameType)}` : "";
  const optional = value.optional === "-" ? "-?" : value.optional ? "?" : "";
  return `{ ${value.readonly ? "readonly " : ""}[${name} in ${
    typeText(constraint)
  }${as}]${optional}: ${typeText(value.tsType)} }`;
}

function argumentsText(types: DocNode[] | undefined): string {
  return types === undefined || types.length === 0
    ? ""
    : `<${types.map(typeText).join(", ")}>`;
}

function typeParameter({ name, constraint, default: preset }: DocNode): string {
  return name +
    (constraint === undefined ? "" : ` extends ${typeText(constraint)}`) +
    (preset === undefined ? "" : ` = ${typeText(preset)}`);
}

/** Text of type parameters in their brackets. */
export function typeParameters(list: DocNode[] | undefined): string {
  return list === undefined || list.length === 0
    ? ""
    : `<${list.map(typeParameter).join(", ")}>`;
}

/** Text of the parameters of a function; long ones get a line each. */
export function parameters(list: DocNode[] | undefined): string {
  const texts = (list ?? []).map(parameter);
  const line = texts.join(", ");
  return line.length <= 64 ? line : `\n  ${texts.join(",\n  ")},\n`;
}

/** Name of a parameter; one that is destructured is named by its place. */
export function parameterName(node: DocNode): string {
  switch (node.kind) {
    case "identifier":
      return node.name;
    case "rest":
      return `...${parameterName(node.arg)}`;
    case "assign":
      return node.left === undefined ? node.key : parameterName(node.left);
    default:
      return "options";
  }
}

function parameter(node: DocNode): string {
  const isOptional = node.optional || node.kind === "assign";
  const type = node.tsType ?? node.left?.tsType ?? node.arg?.tsType;
  return `${parameterName(node)}${isOptional ? "?" : ""}${
    type === undefined ? "" : `: ${typeText(type)}`
  }`;
}

/** Text of a property without its doc. */
export function propertyText(node: DocNode): string {
  const isStatic = node.isStatic ? "static " : "";
  const key = /^[\w$]+$/.test(node.name) || node.name.startsWith("[")
    ? node.name
    : JSON.stringify(node.name);
  return `${isStatic}${node.readonly ? "readonly " : ""}${key}${
    node.optional ? "?" : ""
  }: ${typeText(node.tsType)}`;
}

/** Text of a method or accessor without its doc. */
export function methodText(node: DocNode): string {
  const { params, returnType, typeParams } = node.functionDef ?? node;
  const isStatic = node.isStatic ? "static " : "";
  const accessor = node.kind === "getter"
    ? "get "
    : node.kind === "setter"
    ? "set "
    : "";
  const result = node.kind === "setter" ? "" : `: ${typeText(returnType)}`;
  return `${isStatic}${accessor}${node.name}${node.optional ? "?" : ""}${
    typeParameters(typeParams)
  }(${parameters(params)})${result}`;
}

/** Text of each member of an object type. */
export function memberTexts(
  { properties, methods, callSignatures, indexSignatures }: DocNode,
): readonly string[] {
  return [
    ...(callSignatures ?? []).map((node: DocNode) =>
      `${typeParameters(node.typeParams)}(${parameters(node.params)}): ${
        typeText(node.tsType)
      }`
    ),
    ...(indexSignatures ?? []).map((node: DocNode) =>
      `[${parameters(node.params)}]: ${typeText(node.tsType)}`
    ),
    ...(properties ?? []).map(propertyText),
    ...(methods ?? []).map(methodText),
  ];
}
