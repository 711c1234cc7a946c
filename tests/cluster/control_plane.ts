import type { ChildProcess } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import {
  createAuthority,
  issueCertificate,
} from "../../core/admission/certificates.ts";
import { killGroup, startCommand } from "../support/child_process.ts";
import { until } from "../support/until.ts";
import {
  buildPrograms,
  DEFAULT_KUBERNETES,
  isExecutable,
  programsFolder,
  releaseOf,
} from "./go_programs.ts";

/** A real control plane that scenarios can run against. */
export interface ControlPlane {
  /** Description of its origin. */
  readonly origin: string;
  /** The path of a kubeconfig of an administrator. */
  readonly kubeconfig: string;
  /**
   * The path of the authority of the certificate with which the API server calls
   * admission webhooks, if it was started here; its user is `kube-apiserver`.
   */
  readonly callers?: string | undefined;
  /** Process ID of the API server, if it was started here. */
  readonly pid?: number | undefined;
  /** Path of the log of its requests, one a line, if it was asked for. */
  readonly auditLog?: string | undefined;
  /** Stops only what was started for it. */
  stop(): Promise<void>;
}

const HOST = "127.0.0.1";
const PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager"] as const;

/** Controllers whose effects API clients see; nothing runs pods. */
export const CONTROLLERS: readonly string[] = [
  "garbage-collector-controller",
  "namespace-controller",
  "deployment-controller",
  "replicaset-controller",
  "serviceaccount-controller",
  "root-ca-certificate-publisher-controller",
  "resourcequota-controller",
  "persistentvolumeclaim-protection-controller",
  "persistentvolume-protection-controller",
  // Runs from 1.37 on.
  "storage-version-migrator-controller",
];

/**
 * Builds the programs that {@linkcode startControlPlane} will need. That takes
 * minutes once, at a low priority, so that it can go on beside other tests.
 *
 * @returns Whether they are there; false if they are not needed, or without a Go
 * toolchain.
 */
export async function buildControlPlane(
  kubernetes: string = DEFAULT_KUBERNETES,
): Promise<boolean> {
  const { KUBECONFIG, KUBEBUILDER_ASSETS } = process.env;
  if (KUBECONFIG || KUBEBUILDER_ASSETS) return false;
  return await buildPrograms(releaseOf(kubernetes), PROGRAMS);
}

/**
 * Finds or starts a control plane: that of `KUBECONFIG`, else the programs in
 * `KUBEBUILDER_ASSETS`, else programs built from their published Go modules.
 *
 * @returns Undefined where none exists and no Go toolchain to build one.
 */
export async function startControlPlane(
  {
    kubernetes = DEFAULT_KUBERNETES,
    controllers = CONTROLLERS,
    audits = false,
  }: {
    /** Minor version of programs that are built. */
    readonly kubernetes?: string | undefined;
    readonly controllers?: readonly string[] | undefined;
    /** Whether programs that are started here log all requests. */
    readonly audits?: boolean | undefined;
  } = {},
): Promise<ControlPlane | undefined> {
  const { KUBECONFIG, KUBEBUILDER_ASSETS } = process.env;
  if (KUBECONFIG) {
    return {
      origin: "the cluster of KUBECONFIG",
      kubeconfig: KUBECONFIG,
      stop: () => Promise.resolve(),
    };
  }
  if (KUBEBUILDER_ASSETS) {
    return await startPrograms(KUBEBUILDER_ASSETS, {
      origin: "KUBEBUILDER_ASSETS",
      controllers,
      audits,
    });
  }
  const release = releaseOf(kubernetes);
  return await buildControlPlane(kubernetes)
    ? await startPrograms(programsFolder(release), {
      origin: `Go modules of ${release.version}`,
      controllers,
      audits,
    })
    : undefined;
}

/** Files of one run in a temporary folder. */
interface Files {
  readonly folder: string;
  path(name: string): string;
}

async function startPrograms(
  folder: string,
  { origin, controllers, audits }: {
    readonly origin: string;
    readonly controllers: readonly string[];
    readonly audits: boolean;
  },
): Promise<ControlPlane> {
  const run = await mkdtemp(join(tmpdir(), "coracle-controlplane-"));
  const files: Files = { folder: run, path: (name) => join(run, name) };
  const started: ChildProcess[] = [];
  const start = (program: string, args: readonly string[]) => {
    const child = startCommand([join(folder, program), ...args], { cwd: run });
    const log = createWriteStream(files.path(`${program}.log`));
    child.stdout?.pipe(log, { end: false });
    child.stderr?.pipe(log, { end: false });
    started.push(child);
    return child;
  };
  const stop = async () => {
    for (const child of started.toReversed()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const closed = once(child, "close");
      killGroup(child);
      await closed;
    }
    await rm(run, { recursive: true, force: true });
  };
  try {
    const { port, pid } = await startServers(start, files, {
      controllers,
      audits,
    });
    const programs = new Set<string>(PROGRAMS);
    const manager = join(folder, "kube-controller-manager");
    if (controllers.length > 0 && await isExecutable(manager)) {
      start(
        "kube-controller-manager",
        controllerManagerArgs(files, controllers),
      );
    } else programs.delete("kube-controller-manager");
    return {
      origin: `${[...programs].join(", ")} of ${origin} on port ${port}`,
      kubeconfig: files.path("kubeconfig"),
      callers: files.path("authority.crt"),
      pid,
      ...audits && { auditLog: files.path("audit.log") },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts etcd and the API server, and waits until they serve. */
async function startServers(
  start: (program: string, args: readonly string[]) => ChildProcess,
  files: Files,
  { controllers, audits }: {
    readonly controllers: readonly string[];
    readonly audits: boolean;
  },
): Promise<{ readonly port: number; readonly pid: number | undefined }> {
  const [clients, peers, port] = await freePorts(3);
  const etcd = `http://${HOST}:${clients}`;
  start("etcd", [
    `--data-dir=${files.path("etcd")}`,
    `--listen-client-urls=${etcd}`,
    `--advertise-client-urls=${etcd}`,
    `--listen-peer-urls=http://${HOST}:${peers}`,
    `--initial-advertise-peer-urls=http://${HOST}:${peers}`,
    `--initial-cluster=default=http://${HOST}:${peers}`,
    "--unsafe-no-fsync",
  ]);
  const { authority, token } = await writeCredentials(files, port ?? 0);
  const server = start("kube-apiserver", [
    `--etcd-servers=${etcd}`,
    `--bind-address=${HOST}`,
    `--advertise-address=${HOST}`,
    `--secure-port=${port}`,
    `--tls-cert-file=${files.path("server.crt")}`,
    `--tls-private-key-file=${files.path("server.key")}`,
    `--service-account-key-file=${files.path("service-account.key")}`,
    `--service-account-signing-key-file=${files.path("service-account.key")}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--client-ca-file=${files.path("authority.crt")}`,
    `--token-auth-file=${files.path("tokens.csv")}`,
    `--admission-control-config-file=${files.path("admission.json")}`,
    "--authorization-mode=RBAC",
    // Many Services need many addresses.
    `--service-cluster-ip-range=10.0.0.0/${audits ? 16 : 24}`,
    "--endpoint-reconciler-type=none",
    ...audits
      ? [
        `--audit-policy-file=${files.path("audit.json")}`,
        `--audit-log-path=${files.path("audit.log")}`,
        // Each request is in the log when it has been answered.
        "--audit-log-mode=blocking",
      ]
      : [],
    // Nothing would create the service accounts that the plug-in asks for.
    ...controllers.length === 0
      ? ["--disable-admission-plugins=ServiceAccount"]
      : [],
  ]);
  await until("the API server is ready", () => {
    if (server.exitCode !== null) {
      throw new Error("Cannot start kube-apiserver: it ended");
    }
    return isReady(port ?? 0, authority, token);
  }, { within: 90_000 });
  return { port: port ?? 0, pid: server.pid };
}

/** Writes new certificates and tokens for a run. */
async function writeCredentials(
  files: Files,
  port: number,
): Promise<{ authority: string; token: string }> {
  const authority = createAuthority({ commonName: "coracle-test-authority" });
  const server = issueCertificate(authority, {
    commonName: "kube-apiserver",
    usage: "server",
    hosts: ["localhost", HOST],
  });
  const caller = issueCertificate(authority, {
    commonName: "kube-apiserver",
    usage: "client",
  });
  const { privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs1", format: "pem" },
  });
  const token = randomBytes(24).toString("hex");
  const contents = {
    "authority.crt": authority.certificate,
    "authority.key": authority.key,
    "server.crt": server.certificate,
    "server.key": server.key,
    "service-account.key": privateKey,
    "tokens.csv": `${token},admin,admin,"system:masters"\n`,
    "kubeconfig": kubeconfig(port, authority.certificate, token),
    "callers.json": JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      users: [{
        name: "*",
        user: {
          "client-certificate-data": btoa(caller.certificate),
          "client-key-data": btoa(caller.key),
        },
      }],
    }),
    "audit.json": JSON.stringify({
      apiVersion: "audit.k8s.io/v1",
      kind: "Policy",
      omitStages: ["RequestReceived", "ResponseStarted"],
      rules: [{ level: "Metadata" }],
    }),
    "admission.json": admissionConfiguration(files.path("callers.json")),
  };
  for (const [name, text] of Object.entries(contents)) {
    await writeFile(files.path(name), text, { mode: 0o600 });
  }
  return { authority: authority.certificate, token };
}

/** Configuration of admission webhooks, which are called with a certificate. */
function admissionConfiguration(kubeConfigFile: string): string {
  const group = "apiserver.config.k8s.io/v1";
  return JSON.stringify({
    apiVersion: group,
    kind: "AdmissionConfiguration",
    plugins: ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"].map(
      (name) => ({
        name,
        configuration: {
          apiVersion: group,
          kind: "WebhookAdmissionConfiguration",
          kubeConfigFile,
        },
      }),
    ),
  });
}

function kubeconfig(port: number, authority: string, token: string): string {
  const data = btoa(authority);
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "test",
    clusters: [{
      name: "test",
      cluster: {
        server: `https://${HOST}:${port}`,
        "certificate-authority-data": data,
      },
    }],
    users: [{ name: "admin", user: { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "admin" } }],
  });
}

function controllerManagerArgs(
  files: Files,
  controllers: readonly string[],
): readonly string[] {
  return [
    `--kubeconfig=${files.path("kubeconfig")}`,
    `--service-account-private-key-file=${files.path("service-account.key")}`,
    `--cluster-signing-cert-file=${files.path("authority.crt")}`,
    `--cluster-signing-key-file=${files.path("authority.key")}`,
    `--root-ca-file=${files.path("authority.crt")}`,
    "--use-service-account-credentials=false",
    "--leader-elect=false",
    "--secure-port=0",
    // Requests a second of each controller; by default 20, minutes for a test.
    "--kube-api-qps=500",
    "--kube-api-burst=1000",
    `--controllers=${controllers.join(",")}`,
  ];
}

/** Finds free ports. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(servers.map(async (server) => {
    server.listen(0, HOST);
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  }));
  for (const server of servers) server.close();
  return ports;
}

function isReady(port: number, ca: string, token: string): Promise<boolean> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}` };
    const options = { host: HOST, port, path: "/readyz", ca, headers };
    request(options, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    }).on("error", () => resolve(false)).end();
  });
}
