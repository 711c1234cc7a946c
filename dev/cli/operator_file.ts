import { type Kind, silentLogger } from "@coracle/operator/client";
import type { AdmissionRule, OperatorHandle } from "@coracle/operator/core";
import {
  type AdmissionPolicy,
  type CrdManifest,
  crdManifest,
  type DefinedKind,
} from "@coracle/operator/crd";
import {
  definitionRules,
  isDefinedKind,
  policyRule,
} from "@coracle/operator/internal";
import { UsageError } from "./command.ts";
import { type ConversionFindings, findConversion } from "./conversions.ts";
import { type ExportedPolicy, isPolicy, plainPolicy } from "./policies.ts";
import { runAsMain } from "./main_process.ts";
import {
  describeOperators,
  type OperatorDescription,
} from "./operator_description.ts";
import {
  type DescribeOptions,
  isGuarded,
  loadOperatorModule,
  noOperatorError,
  type OperatorModule,
  selectOperators,
} from "./operator_module.ts";

/** Description of the operators and kinds of a file; plain data. */
export interface FileDescription {
  readonly operators: readonly OperatorDescription[];
  /** CustomResourceDefinitions of the file's exported or registered kinds. */
  readonly definitions: readonly CrdManifest[];
  /** Admission policies that the file exports, or its operators apply. */
  readonly policies: readonly ExportedPolicy[];
  /** Where the rules of its kinds and policies are enforced. */
  readonly rules: readonly AdmissionRule[];
  /** What the checks of their conversions have found. */
  readonly conversions: readonly ConversionFindings[];
  /** What the file has instead of an operator, for error messages. */
  readonly received: string;
}

/**
 * Describes the operators and kinds of a file, without running the operators. A
 * file that creates them only as the main module runs in a process of its own.
 *
 * @throws {UsageError} If the file does not exist, is not a module, or has no
 * operators and kinds.
 */
export async function describeFile(
  file: string,
  options: DescribeOptions,
): Promise<FileDescription> {
  const found = await describeImported(file, options);
  const { operators, definitions, policies } = found;
  const isEmpty = operators.length === 0 &&
    (options.operators || definitions.length + policies.length === 0);
  const description = isEmpty && await isGuarded(file)
    ? await runAsMain<FileDescription>({ file, task: "describe", options })
    : found;
  if (!options.operators) requireDefinitions(file, description);
  else if (description.operators.length === 0) {
    throw noOperatorError(file, description.received);
  }
  return description;
}

async function describeImported(
  file: string,
  options: DescribeOptions,
): Promise<FileDescription> {
  const module = await loadOperatorModule(file, { runs: false });
  try {
    return await describeModule(module, options);
  } finally {
    module.release();
  }
}

/** Describes the operators and kinds of a loaded file. */
export async function describeModule(
  module: OperatorModule,
  options: DescribeOptions,
): Promise<FileDescription> {
  const exports = await module.exports;
  const { operators, received } = await selectOperators(
    module,
    options.export,
    { logger: silentLogger },
  );
  const definitions = new Map<string, CrdManifest>();
  const kinds = new Set<DefinedKind>();
  const registered = operators.flatMap(({ controllers }) =>
    controllers.flatMap(kindsOf)
  );
  for (const kind of [...registered, ...Object.values(exports)]) {
    if (!isKind(kind) || !isDefinedKind(kind)) continue;
    kinds.add(kind);
    const manifest = crdManifest(kind);
    definitions.set(manifest.metadata.name, manifest);
  }
  const rules = new Map<string, AdmissionRule>();
  const policies = new Map<string, ExportedPolicy>();
  const add = (rule: AdmissionRule) => rules.set(keyOf(rule), rule);
  for (const operator of operators) {
    operator.admission().forEach(add);
    for (const one of operator.settings.policies ?? []) {
      policies.set(nameOf(one), one);
    }
  }
  for (const kind of kinds) {
    definitionRules(kind).forEach(add);
  }
  for (const one of Object.values(exports)) {
    if (!isPolicy(one) || policies.has(nameOf(one))) continue;
    policies.set(nameOf(one), one);
    add(policyRule(one as AdmissionPolicy));
  }
  return {
    operators: await describeOperators(operators),
    definitions: [...definitions.values()],
    policies: [...policies.values()].map(plainPolicy),
    rules: [...rules.values()],
    conversions: (await Promise.all(Array.from(kinds, findConversion)))
      .filter((found) => found !== undefined),
    received,
  };
}

function keyOf({ kind, rule }: AdmissionRule): string {
  return `${kind} ${rule}`;
}

function nameOf({ policy }: ExportedPolicy): string {
  return `${policy.kind} ${policy.metadata.name}`;
}

type Controller = OperatorHandle["controllers"][number];

/** Kinds of a controller: its primaries and all that it watches. */
function kindsOf(controller: Controller): readonly Kind[] {
  const { kind, secondaryKinds, readOnlyKinds } = controller;
  return [kind, ...secondaryKinds, ...readOnlyKinds];
}

function isKind(value: unknown): value is Kind {
  return typeof value === "object" && value !== null && "kind" in value &&
    typeof value.kind === "string";
}

function requireDefinitions(
  file: string,
  { operators, definitions, policies, received }: FileDescription,
): void {
  if (definitions.length + policies.length > 0) return;
  const kinds = operators.flatMap(({ controllers }) =>
    controllers.flatMap(kindsOf)
  );
  throw new UsageError(
    kinds.length > 0
      ? `Cannot print the definitions of ${file}: it defines no kind, all that its operator uses are built in or defined by others: received ${
        [...new Set(kinds.map(({ kind }) => kind))].join(", ")
      }`
      : `Cannot print the definitions of ${file}: it defines no kind: export the result of defineKind, or register it with an Operator: received ${received}`,
  );
}
