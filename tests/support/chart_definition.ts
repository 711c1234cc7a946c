import { readFileSync } from "node:fs";
import { parse } from "yaml";
import type { CrdManifest } from "@coracle/operator/crd";

/** The definition in a template of a chart, without its expressions. */
export function chartDefinition(file: string): CrdManifest {
  return parse(readFileSync(file, "utf8").replaceAll(/^.*\{\{.*$/gm, ""));
}
