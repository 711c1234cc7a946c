/**
 * Bugs that `npm run check:planted` plants in `shop.ts`, each by replacing text.
 *
 * @module
 */

/** A bug: its kind, what is wrong, and the texts that are replaced. */
export type PlantedBug = readonly [
  kind: string,
  wrong: string,
  ...edits: readonly (readonly [text: string, replacement: string])[],
];

const CLEANUP = `const account = await accountOf(uid);
      if (account) await ask(\`/\${account.id}\`, { method: "DELETE" });`;
const PUT = `await ask(\`/\${account.id}\`, { method: "PUT", body });`;
const LOOK_UP = "let account = await accountOf(uid);";
const CONFIG = `await ctx.apply(ConfigMap, {
        metadata: { name: \`\${name}-config\` },
        data: { plan: spec.plan, members: String(spec.members) },
      });`;
const SERVICE = `await ctx.apply(Service, {
        metadata: { name },
        spec: { selector: { shop: name }, ports: [{ port: 80 }] },
      });`;
const KEPT = `const kept = await ctx.client.find(Secret, keys);`;
const OWNS = "owns: [ConfigMap, Secret, Service]";
const KEPT_PLAN = "plan: spec.plan,\n        account";
const LIVE = "const shop = await ctx.client.find(Shop, ctx.key);";
const NO_KEY = `{ method: "POST", body }`;
const WITH_KEY = `{ method: "POST", headers, body }`;
const PRUNE = "if (at >= spec.members && metadata.labels?.[MEMBER] === name) {";
const OPERATOR = "export function operator(";
const START = "const keys = {";

/** Unowned copy of a service, without the end. */
const unowned = (text: string) => `${text.slice(0, -2)}, { owned: false });`;
const quietly = (text: string) => `${text.slice(0, -1)}.catch(() => {});`;

export const PLANTED: readonly PlantedBug[] = [
  ["finalizer", "no cleanup at all", [CLEANUP, ""]],
  ["finalizer", "errors of the cleanup are swallowed", [
    `{ method: "DELETE" });`,
    `{ method: "DELETE" }).catch(() => {});`,
  ]],
  ["finalizer", "cleanup needs an account that may be gone", [
    "if (account) await ask",
    `if (!account) throw new Error("It has no account");\n      await ask`,
  ]],
  ["finalizer", "cleanup needs a part that may be gone", [
    'async cleanup({ metadata: { uid = "" } }) {',
    'async cleanup({ metadata: { uid = "", name, namespace } }, ctx) {\n      await ctx.client.get(ConfigMap, { name: `${name}-config`, namespace });',
  ]],
  ["finalizer", "cleanup trusts a status that may be missing", [
    'async cleanup({ metadata: { uid = "" } }) {',
    'async cleanup({ metadata: { uid = "" }, status }) {\n      if (!status?.account) return;',
  ]],
  ["leak", "an account is made without a look-up or a key", [
    LOOK_UP,
    'let account: Account | undefined = status?.account ? { id: status.account, plan: status.plan ?? "" } : undefined;',
  ], [WITH_KEY, NO_KEY]],
  ["leak", "a refused look-up counts as none", [
    LOOK_UP,
    "let account = await accountOf(uid).catch(() => undefined);",
  ], [WITH_KEY, NO_KEY]],
  [
    "leak",
    "an account is made once for each process",
    [
      LOOK_UP,
      "let account = known.get(uid);",
    ],
    [WITH_KEY, NO_KEY],
    [
      "      } else if (account.plan",
      "        known.set(uid, account);\n      } else if (account.plan",
    ],
    [OPERATOR, `const known = new Map<string, Account>();\n${OPERATOR}`],
  ],
  ["leak", "a mail is sent by each run before the status is written", [
    LOOK_UP,
    `if (!status?.account) await ask("/mail", { method: "POST", body: JSON.stringify({ owner: "mail" }) });\n      ${LOOK_UP}`,
  ]],
  ["leak", "the answer of the deletion is not awaited", [
    "if (account) await ask(",
    "if (account) void ask(",
  ]],
  ["external", "the plan of an account is never changed", [PUT, ""]],
  ["external", "errors of the bank are swallowed", [PUT, quietly(PUT)]],
  ["external", "the plan is changed by what the status says", [
    "account.plan !== spec.plan",
    "status?.plan !== spec.plan",
  ], [
    START,
    `await ctx.patch(Shop, name, { status: { plan: spec.plan } }, { subresource: "status" }).catch(() => {});\n      ${START}`,
  ]],
  ["lost update", "a conflict counts as success", [
    CONFIG,
    `const old = await ctx.get(ConfigMap, \`\${name}-config\`);
      const data = { plan: spec.plan, members: String(spec.members) };
      if (!old) await ctx.apply(ConfigMap, { metadata: { name: \`\${name}-config\` }, data });
      else if (status?.plan !== spec.plan) {
        await ctx.replace(ConfigMap, { ...old, data }).catch((error) => {
          if (error.status !== 409) throw error;
        });
      }`,
  ]],
  ["lost update", "an error of a write is swallowed", [
    SERVICE,
    quietly(SERVICE),
  ]],
  ["lost update", "errors of the configuration are swallowed", [
    CONFIG,
    quietly(CONFIG),
  ]],
  ["external", "the change of a plan is not awaited", [
    PUT,
    PUT.replace("await", "void"),
  ]],
  ["lost update", "the status is written before the work", [
    START,
    `if (status?.plan === spec.plan && status.members === spec.members) return;
      await ctx.patch(Shop, name, { status: { plan: spec.plan, members: spec.members } }, { subresource: "status" });
      ${START}`,
  ]],
  ["lost update", "it gives up after two failures", [
    START,
    `if (ctx.retry.attempt > 1) return;\n      ${START}`,
  ]],
  ["create", "what exists is an error", [
    SERVICE,
    SERVICE.replace("ctx.apply", "if (!status?.plan) await ctx.create")
      .replace("await if", "if"),
  ]],
  ["create", "a part with a generated name is made without a look", [
    SERVICE,
    `${SERVICE}
      if (!status?.plan) await ctx.create(ConfigMap, { metadata: { generateName: \`\${name}-receipt-\` }, data: {} });`,
  ]],
  ["create", "a part is made for the first generation only", [
    SERVICE,
    `if (generation === 1) ${SERVICE}`,
  ]],
  ["create", "a part is made but never changed", [
    CONFIG,
    `if (!await ctx.get(ConfigMap, \`\${name}-config\`)) ${CONFIG}`,
  ]],
  ["create", "a part is deleted before it is made anew", [
    SERVICE,
    `const key0 = \`\${name}-total\`;
      const total = await ctx.get(ConfigMap, key0);
      if (total?.data?.["plan"] !== spec.plan) {
        const count = Number(total?.data?.["count"] ?? 0) + 1;
        if (total) await ctx.delete(ConfigMap, key0);
        await ctx.apply(ConfigMap, { metadata: { name: key0 }, data: { plan: spec.plan, count: String(count) } });
      }
      ${SERVICE}`,
  ]],
  ["owner", "a part has no owner", [SERVICE, unowned(SERVICE)]],
  ["owner", "the configuration has no owner", [CONFIG, unowned(CONFIG)]],
  ["owner", "services are not watched", [OWNS, "owns: [ConfigMap, Secret]"]],
  ["owner", "secrets are not watched", [OWNS, "owns: [ConfigMap, Service]"]],
  ["status", "the status keeps the first plan", [
    KEPT_PLAN,
    "plan: status?.plan ?? spec.plan,\n        account",
  ]],
  ["status", "the status is of the first generation", [
    "          generation,\n",
    "          generation: 1,\n",
  ]],
  ["status", "a message stays for ever", [
    `: "",\n        conditions`,
    `: status?.message ?? "",\n        conditions`,
  ]],
  ["status", "the status says what it said before", [
    "members: spec.members,\n        message",
    "members: Math.max(spec.members, status?.members ?? 0),\n        message",
  ]],
  ["hot loop", "the configuration has the time", [
    "members: String(spec.members) },",
    "members: String(spec.members), at: String(Date.now()) },",
  ]],
  ["hot loop", "the status has the time", [
    `message: spec.members === 0 ? "Nobody is there" : ""`,
    "message: String(now)",
  ]],
  ["hot loop", "each run counts itself", [
    SERVICE,
    `const runs = Number(metadata.annotations?.["runs"] ?? 0) + 1;
      await ctx.patch(Shop, name, { metadata: { annotations: { runs: String(runs) } } });
      ${SERVICE}`,
  ]],
  ["path", "an optional part stays", [
    "await ctx.delete(ConfigMap, poster);",
    "",
  ]],
  ["path", "members only ever grow", [PRUNE, "if (false) {"]],
  ["path", "members that leave are known in memory only", [
    PRUNE,
    "if (at >= spec.members && at < (before.get(name) ?? 0)) {",
  ], [
    LOOK_UP,
    `before.set(name, spec.members);\n      ${LOOK_UP}`,
  ], [OPERATOR, `const before = new Map<string, number>();\n${OPERATOR}`]],
  ["stale read", "a secret is taken from the cache", [
    KEPT,
    "const kept = await ctx.get(Secret, keys.name);",
  ]],
  ["stale read", "members are deleted by a cached spec", [
    LIVE,
    "const shop = cached;",
  ]],
  ["leadership", "a memory of the account outlives the leadership", [
    "} else if (account.plan !== spec.plan) {",
    "} else if (plans.get(uid) !== spec.plan) {\n        plans.set(uid, spec.plan);",
  ], [OPERATOR, `const plans = new Map<string, string>();\n${OPERATOR}`]],
  ["leadership", "a timer writes without the leadership", [
    SERVICE,
    `${SERVICE}
      setTimeout(() => void ctx.client.apply(ConfigMap, { metadata: { name: \`\${name}-note\`, namespace }, data: { plan: spec.plan } }, { force: true }), 1_000);`,
  ]],
  // Kinds of bugs that the public trackers of operators tell of.
  ["others", "annotations of others are removed", [
    CONFIG,
    `const old = await ctx.get(ConfigMap, \`\${name}-config\`);
      const data = { plan: spec.plan, members: String(spec.members) };
      if (!old) await ctx.apply(ConfigMap, { metadata: { name: \`\${name}-config\` }, data });
      else if (old.data?.["plan"] !== data.plan || old.data?.["members"] !== data.members || old.metadata.annotations !== undefined) {
        const { annotations: _, ...metadata } = old.metadata;
        await ctx.replace(ConfigMap, { ...old, metadata, data });
      }`,
  ]],
  ["others", "members of all shops are deleted", [
    "for (const { metadata } of await ctx.secondaries(ConfigMap)) {",
    "for (const { metadata } of (await ctx.client.list(ConfigMap, { namespace })).items) {",
  ], [
    PRUNE,
    "const isMine = Array.from({ length: spec.members }, (_, at) => `${name}-member-${at}`).includes(metadata.name);\n        if (!isMine && metadata.labels?.[MEMBER] !== undefined) {",
  ]],
  ["others", "a part of all shops has one name", [
    CONFIG,
    CONFIG.replace("`${name}-config`", '"config"'),
  ]],
  ["path", "what was once in a part stays there", [
    CONFIG,
    `const old = await ctx.get(ConfigMap, \`\${name}-config\`);
      const data = { ...old?.data, plan: spec.plan, members: String(spec.members), ...spec.exposed && { exposed: "yes" } };
      await ctx.apply(ConfigMap, { metadata: { name: \`\${name}-config\` }, data });`,
  ]],
  ["stuck", "a failure is final", [
    START,
    `if (status?.message === "It has failed") return;\n      ${START}`,
  ], [
    LOOK_UP,
    `let account: Account | undefined;
      try {
        account = await accountOf(uid);
      } catch {
        return setStatus({ ...status, message: "It has failed" });
      }`,
  ]],
  ["stuck", "work that was begun is never taken up again", [
    START,
    `if (status?.message === "Working") return;
      if (status?.plan !== spec.plan) await ctx.patch(Shop, name, { status: { message: "Working" } }, { subresource: "status" });
      ${START}`,
  ]],
  ["stuck", "a field that cannot change is changed", [
    CONFIG,
    CONFIG.replace("        data:", "        immutable: true,\n        data:"),
  ]],
  ["stuck", "the cleanup waits for parts that go after their object", [
    'async cleanup({ metadata: { uid = "" } }) {',
    'async cleanup({ metadata: { uid = "", name, namespace } }, ctx) {\n      if (await ctx.client.find(ConfigMap, { name: `${name}-config`, namespace })) throw new Error("The configuration is still there");',
  ]],
  ["data loss", "a key is drawn again while the status is missing", [
    'const key = kept?.data?.["key"] ?? randomBytes(18).toString("base64");',
    'const key = status?.plan && kept?.data?.["key"] || randomBytes(18).toString("base64");',
  ]],
  ["repair", "what was observed once is not looked at again", [
    START,
    `if (status?.conditions?.[0]?.observedGeneration === generation) return;\n      ${START}`,
  ]],
];
