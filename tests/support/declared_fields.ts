import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { PROJECT, runCommand } from "./child_process.ts";

/** Type as `deno doc --json` describes it. */
interface DocType {
  readonly kind: string;
  readonly value: unknown;
}

interface DocProperty {
  readonly name: string;
  readonly optional?: boolean;
  readonly tsType?: DocType;
}

type Interfaces = ReadonlyMap<string, readonly DocProperty[]>;

/** Interfaces of source files, by name. */
async function interfacesOf(files: readonly string[]): Promise<Interfaces> {
  const { code, stdout, stderr } = await runCommand(
    ["deno", "doc", "--json", ...files],
  );
  assert.equal(code, 0, stderr);
  const { nodes } = JSON.parse(stdout);
  const found = new Map<string, readonly DocProperty[]>();
  for (const file of files) {
    const { href } = pathToFileURL(join(PROJECT, file));
    for (const { name, declarations } of nodes[href]?.symbols ?? []) {
      const { def, kind } = declarations[0];
      if (kind === "interface") found.set(name, def.properties);
    }
  }
  return found;
}

/**
 * Paths of the fields of an interface in JSON, such as `changes[].fields[].path`;
 * those that may be absent end with `?`.
 */
export async function declaredFields(
  name: string,
  files: readonly string[],
): Promise<readonly string[]> {
  const interfaces = await interfacesOf(files);
  const paths: string[] = [];
  const inner = ({ kind, value }: DocType, path: string): void => {
    switch (kind) {
      case "typeOperator":
        return inner((value as { readonly tsType: DocType }).tsType, path);
      case "array":
        return inner(value as DocType, `${path}[]`);
      case "union":
      case "intersection":
        return (value as readonly DocType[]).forEach((one) => inner(one, path));
      case "typeLiteral":
        return all(
          (value as { readonly properties: readonly DocProperty[] }).properties,
          path,
        );
      case "typeRef":
        return all(
          interfaces.get((value as { readonly typeName: string }).typeName) ??
            [],
          path,
        );
    }
  };
  const all = (properties: readonly DocProperty[], path: string) => {
    for (const { name, optional, tsType } of properties) {
      const own = path === "" ? name : `${path}.${name}`;
      paths.push(optional ? `${own}?` : own);
      if (tsType !== undefined) inner(tsType, own);
    }
  };
  const root = interfaces.get(name);
  assert(root, `the files have no interface ${name}`);
  all(root, "");
  return paths;
}
