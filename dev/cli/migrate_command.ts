import { Client, loadConfig, systemClock } from "@coracle/operator/client";
import { migrateStorage } from "@coracle/operator/internal";
import { type Command, UsageError } from "./command.ts";
import { textOf } from "./serving.ts";

/** Objects written in a second, without `--rate`. */
const DEFAULT_RATE = 50;
const HIGHEST_RATE = 10_000;

export const migrateCommand: Command = {
  name: "migrate",
  operands: "DEFINITION…",
  count: [1, Infinity],
  summary: "store all objects of kinds in their present storage version",
  description: "Stores all objects of CustomResourceDefinitions, such as\n" +
    "boats.sample.example.com, in the present storage version, and removes earlier\n" +
    "ones from status.storedVersions, so that they can be removed from the\n" +
    "definition. The API server does it where it offers StorageVersionMigration;\n" +
    "elsewhere each object is written without a change. Needs the rights to get\n" +
    "definitions, to patch their status, to list, get and patch the objects, and to\n" +
    "create, get and delete StorageVersionMigrations where the server has them.",
  flags: {
    "kubeconfig FILE": "kubeconfig; by default as kubectl finds it",
    "context NAME": "context of the kubeconfig; by default the current one",
    "rate N":
      `objects that are written in a second at most; ${DEFAULT_RATE} by default`,
  },
  async run({ flags, operands, terminal }) {
    const rate = rateOf(textOf(flags, "rate"));
    const client = new Client(
      await loadConfig({
        kubeconfig: textOf(flags, "kubeconfig"),
        context: textOf(flags, "context"),
      }),
    );
    const signal = terminal.interrupts();
    try {
      for (const name of new Set(operands)) {
        const { version, written } = await migrateStorage(client, name, {
          clock: systemClock,
          signal,
          rate,
          say: (text) => terminal.say(`${name}: ${text}\n`),
        });
        const how = written > 0 ? `, ${written} written` : "";
        terminal.out(`${name}: all objects are stored in ${version}${how}\n`);
      }
      return 0;
    } finally {
      await client.close();
    }
  },
};

function rateOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_RATE;
  const rate = Number(text);
  if (Number.isInteger(rate) && rate >= 1 && rate <= HIGHEST_RATE) return rate;
  throw new UsageError(
    `Cannot migrate: --rate must be a number from 1 to ${HIGHEST_RATE}: received "${text}"`,
  );
}
