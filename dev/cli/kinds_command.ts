import { type Command, type FlagValues, UsageError } from "./command.ts";
import {
  CLUSTER_FLAGS,
  definitionsOf,
  installedDefinitions,
  PUBLISHED,
} from "./definitions.ts";
import { typescriptKinds } from "./typescript_kinds.ts";

export const kindsCommand: Command = {
  name: "kinds",
  operands: "CRD.yaml…",
  count: [1, Infinity],
  summary: "print typed kinds for CustomResourceDefinitions",
  description:
    "Prints TypeScript with the types and descriptors of the kinds that the\n" +
    "CustomResourceDefinitions in the files define, for operators that use kinds\n" +
    "of others: coracle kinds crds.yaml > kinds.ts. A file may be a URL, or - for\n" +
    "standard input, or the name of a project that publishes its definitions:\n" +
    `${Object.keys(PUBLISHED).join(", ")}.\n` +
    "With --context or --kubeconfig, the operands are names of definitions that\n" +
    "the cluster has, or their groups: coracle kinds --context dev cert-manager.io",
  flags: CLUSTER_FLAGS,
  async run({ flags, operands, terminal }) {
    const definitions = isOfCluster(flags)
      ? await ofCluster(operands, flags)
      : await definitionsOf(operands.map((file) => PUBLISHED[file] ?? file));
    terminal.out(typescriptKinds(definitions));
    return 0;
  },
};

function isOfCluster(flags: FlagValues): boolean {
  return flags["context"] !== undefined || flags["kubeconfig"] !== undefined;
}

/** Definitions that a cluster must have. */
async function ofCluster(names: readonly string[], flags: FlagValues) {
  const found = await installedDefinitions(names, flags);
  const missing = names.filter((name) =>
    !found.some(({ metadata, spec }) =>
      metadata.name === name || spec.group === name
    )
  );
  if (missing.length === 0) return found;
  throw new UsageError(
    `Cannot read kinds of the cluster: a name must be that of a CustomResourceDefinition, such as certificates.cert-manager.io, or of its group: received ${
      missing.join(", ")
    }`,
  );
}
