/**
 * Serves the embedded API server as the suites need it, until it is ended:
 * `embedded_server.ts KUBECONFIG VERSION CONTROLLERS`. Without controllers it has, like
 * envtest, no admission plug-in ServiceAccount either.
 *
 * @module
 */
import { writeFile } from "node:fs/promises";
import process from "node:process";
import { ApiServer, type KubernetesVersion } from "@coracle/dev/apiserver";

const [kubeconfig = "", version = "", names = ""] = process.argv.slice(2);
const controllers = names.split(",").filter(Boolean);
const server = await ApiServer.start({
  version: version as KubernetesVersion,
  controllers,
  disabledAdmission: controllers.length === 0 ? ["ServiceAccount"] : [],
});
await writeFile(kubeconfig, server.kubeconfig, { mode: 0o600 });
process.stdout.write(`Serving on ${server.url}\n`);
