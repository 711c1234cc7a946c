/**
 * Installs the definitions of public projects on the embedded API server and on a
 * real control plane, sends their samples and random changes of them to both, and
 * prints the answers that differ, grouped by what both said, with their share.
 * Exits with 1 if it is above the limit.
 *
 * `npm run test:crds -- --from FOLDER --mutations 8 --seed 1`; the folder has a
 * folder of manifests for each project, such as the `manifests` of a bundle of
 * OperatorHub, and is `.cache/definitions` by default. `--project REGEX` takes some
 * of them, `--limit PERCENT` sets the limit, `--json FILE` writes each difference.
 *
 * @module
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { ApiServer } from "@coracle/dev/apiserver";
import { startControlPlane } from "../cluster/control_plane.ts";
import { PROJECT } from "../support/child_process.ts";
import { commandLine } from "../support/command_line.ts";
import { realTarget } from "../transcripts/real_target.ts";
import { readProjects } from "./projects.ts";
import { ComparedServers } from "./session.ts";

/** Differing answers of a kind that are printed. */
const EXAMPLES = 2;

const { values, integer, positive } = commandLine("compare definitions", {
  from: { type: "string", default: join(PROJECT, ".cache", "definitions") },
  mutations: { type: "string", default: "8" },
  seed: { type: "string", default: "1" },
  project: { type: "string", default: "" },
  limit: { type: "string", default: "0.5" },
  json: { type: "string" },
});
const print = (line: string) => void process.stdout.write(`${line}\n`);

const projects = await readProjects(values.from, new RegExp(values.project))
  .catch((error: Error) => {
    print(`Cannot compare definitions: ${error.message}`);
    return process.exit(2);
  });
if (projects.length === 0) {
  print(`Cannot compare definitions: there are none in ${values.from}`);
  process.exit(2);
}
const plane = await startControlPlane();
if (plane === undefined) {
  print("Cannot compare definitions: there is no real control plane");
  process.exit(2);
}
process.env.KUBECONFIG = plane.kubeconfig;
const server = await ApiServer.start({ port: 0, tls: false });
const { url, token } = server;
const { authority, ...real } = await realTarget();
const servers = new ComparedServers(
  [{ url, token }, { ...real, authority: authority?.toString() }],
  { seed: integer("seed"), mutations: integer("mutations") },
);
let kinds = 0;
try {
  for (const [index, project] of projects.entries()) {
    kinds += project.definitions.length;
    await servers.compare(project).catch((error: Error) =>
      print(`${project.name} was cut short: ${error.message}`)
    );
    const { answers, findings } = servers;
    process.stderr.write(
      `${project.name}, ${
        index + 1
      } of ${projects.length} projects: ${findings.length} of ${answers} answers differ\n`,
    );
    if (values.json) await writeFile(values.json, JSON.stringify(findings));
  }
} finally {
  servers.close();
  await server.stop();
  await plane.stop();
}
const { findings, answers } = servers;
const groups = Map.groupBy(
  findings,
  ({ path, embedded, real }) =>
    `${path.replaceAll(/\.\d+|\.[sm]\d+/g, ".N")}\n  embedded: ${
      shape(embedded)
    }\n  real:     ${shape(real)}`,
);
for (
  const [key, found] of [...groups].sort(([, a], [, b]) => b.length - a.length)
) {
  print(`${found.length} × ${key}`);
  for (const { project, request } of found.slice(0, EXAMPLES)) {
    print(`  such as ${project}: ${request.slice(0, 300)}`);
  }
}
const percent = 100 * findings.length / answers;
print(
  `${findings.length} of ${answers} answers differ (${
    percent.toFixed(2)
  } %): ${kinds} definitions of ${projects.length} projects, seed ${values.seed}`,
);
process.exit(percent > positive("limit") ? 1 : 0);

/** Difference without what belongs to one object. */
function shape(text: string): string {
  return text.replaceAll(/\b[ms]\d+\b/g, "N").replaceAll(/\d+/g, "0")
    .slice(0, 160);
}
