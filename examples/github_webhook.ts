/**
 * Operator that receives GitHub's webhooks. A Repository names a repository on
 * GitHub, and its status has the last commit pushed to its branch:
 *
 *     apiVersion: sample.coracle.dev/v1
 *     kind: Repository
 *     metadata: { name: boat }
 *     spec: { repository: example/boat, branch: main }
 *
 * In the settings of the repository on GitHub, add a webhook for pushes with the
 * content type `application/json` and the secret that WEBHOOK_SECRET holds here.
 */
import {
  defineKind,
  type ObjectOf,
  Operator,
  patchStatus,
} from "@coracle/operator";
import { cachingInboundSource, webhookSource } from "@coracle/operator/sources";
import process from "node:process";
import { z } from "zod";

const Repository = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Repository",
  plural: "repositories",
  spec: z.object({
    repository: z.string().regex(/^[^/]+\/[^/]+$/),
    branch: z.string().default("main"),
  }),
  status: z.object({ commit: z.string(), message: z.string() }).partial(),
  printerColumns: [
    { name: "Repository", type: "string", jsonPath: ".spec.repository" },
    { name: "Commit", type: "string", jsonPath: ".status.commit" },
  ],
});
type Repository = ObjectOf<typeof Repository>;

/** Fields of a push that this operator reads. */
const Push = z.object({
  ref: z.string(),
  repository: z.object({ full_name: z.string() }),
  head_commit: z.object({ id: z.string(), message: z.string() }).nullable(),
});

/** Last commit of each Repository; a new commit triggers a run. */
const commits = cachingInboundSource<
  Repository,
  { readonly id: string; readonly message: string }
>({ name: "commits" });

const secret = process.env["WEBHOOK_SECRET"];
if (!secret) {
  throw new TypeError(
    "Cannot tell what GitHub sends from what others do: WEBHOOK_SECRET must be set, as in the webhook's settings there: received nothing",
  );
}

// A request without a valid signature is refused here.
const github = webhookSource<Repository>({
  name: "github",
  host: process.env["WEBHOOK_HOST"] ?? "127.0.0.1",
  port: Number(process.env["WEBHOOK_PORT"] ?? 8080),
  path: "/github",
  check: { hmac: { secret } },
  primaries(request, known) {
    if (request.headers["x-github-event"] !== "push") return [];
    const { ref, repository, head_commit } = Push.parse(request.json());
    if (head_commit === null) return []; // the branch was deleted
    const pushed = known.list().filter(({ spec }) =>
      spec.repository === repository.full_name &&
      ref === `refs/heads/${spec.branch}`
    );
    for (const { metadata } of pushed) commits.push(metadata, head_commit);
    return pushed.map(({ metadata }) => metadata);
  },
});

const operator = new Operator();

operator.register(Repository, {
  async reconcile(_repository, ctx) {
    const commit = await ctx.secondary(commits);
    // No push since the operator started: the status is still right.
    if (commit === undefined) return;
    return patchStatus({ commit: commit.id, message: commit.message });
  },
}, { sources: [github, commits], install: true });

await operator.run();
