import { untyped } from "@coracle/operator";
import { Secret } from "@coracle/operator/kinds";
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { after, test } from "node:test";
import { type PostgresServer, startPostgres } from "./postgres_server.ts";
import { Program, until, withExample } from "./run_example.ts";

const PostgresSchema = untyped({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "PostgresSchema",
  plural: "postgresschemas",
  scope: "Namespaced",
});

/** The database of the tests, which takes seconds to start. */
let started: Promise<PostgresServer> | undefined;

after(async () => {
  await (await started)?.stop();
});

function runningPostgres(): Promise<PostgresServer> {
  return started ??= startPostgres();
}

const KEY = { namespace: "default", name: "orders" };
const SECRET = { namespace: "default", name: "orders-postgres" };

test("The PostgreSQL example keeps a schema, its role and a password, and drops them", async () => {
  const postgres = await runningPostgres();
  const roles = () =>
    postgres.query(`
      SELECT nspname AS schema, rolname AS role, rolconnlimit AS limit,
             shobj_description(r.oid, 'pg_authid') AS note
        FROM pg_roles r LEFT JOIN pg_namespace n ON r.oid = n.nspowner
       WHERE rolname LIKE 'default.%'`);
  await withExample(
    "postgres_schema.ts",
    async ({ client, program }) => {
      await client.create(PostgresSchema, { metadata: { ...KEY }, spec: {} });
      await until("the role and its schema", async () => {
        const [one] = await roles();
        return one?.["schema"] === "default.orders" && one["limit"] === -1;
      });
      const password = async () => {
        const { data = {} } = await client.find(Secret, SECRET) ?? {};
        return Buffer.from(data["password"] ?? "", "base64").toString();
      };
      const first = await password();
      assert.equal(first.length, 32);
      const { data } = await client.get(Secret, SECRET);
      assert.equal(
        Buffer.from(data!["username"]!, "base64").toString(),
        "default.orders",
      );
      await until("the status", async () => {
        const { status } = await client.get(PostgresSchema, KEY) as {
          status?: { schema?: string };
        };
        return status?.schema === "default.orders";
      });

      await client.patch(PostgresSchema, KEY, {
        spec: { connectionLimit: 5 },
      });
      await until(
        "the new limit",
        async () => (await roles())[0]?.["limit"] === 5,
      );

      await postgres.query('DROP SCHEMA "default.orders" CASCADE');
      await until(
        "the schema that somebody dropped is back",
        async () => (await roles())[0]?.["schema"] === "default.orders",
      );

      await postgres.query('ALTER SCHEMA "default.orders" OWNER TO postgres');
      await until(
        "the schema that somebody took is the role's again",
        async () => (await roles())[0]?.["schema"] === "default.orders",
      );

      const [{ note } = {}] = await roles();
      await client.delete(Secret, SECRET);
      await until(
        "the role has the new password",
        async () =>
          (await roles())[0]?.["note"] !== note &&
          await password() !== first,
      );

      await client.delete(PostgresSchema, KEY);
      await until(
        "everything is gone",
        async () =>
          await client.find(PostgresSchema, KEY) === undefined &&
          (await roles()).length === 0 &&
          await client.find(Secret, SECRET) === undefined,
      );
      assert.doesNotMatch(program.output, new RegExp(first));
    },
    { DATABASE_URL: postgres.url },
  )();
});

test("The PostgreSQL example ends although queries wait when it is stopped", async () => {
  const postgres = await runningPostgres();
  const goOn = await postgres.hold();
  await withExample(
    "postgres_schema.ts",
    async ({ client, program }) => {
      for (const name of ["orders", "bills", "carts"]) {
        const metadata = { namespace: "default", name };
        await client.create(PostgresSchema, { metadata, spec: {} });
        await until(
          "its Secret, which is made before its schema",
          () =>
            client.find(Secret, {
              namespace: "default",
              name: `${name}-postgres`,
            }),
        );
      }
      const ended = program.end();
      await program.says(/"Stopping"/);
      // The second signal ends the time that runs have to end.
      void program.end();
      await program.says(/"Operator stopped"/);
      goOn();
      assert.equal(await ended, 0);
    },
    { DATABASE_URL: postgres.url },
  )();
});

test(
  "The PostgreSQL example starts a database where none is given",
  withExample("postgres_schema.ts", async ({ client }) => {
    await client.create(PostgresSchema, { metadata: { ...KEY }, spec: {} });
    await until("the schema is made", async () => {
      const { status } = await client.get(PostgresSchema, KEY) as {
        status?: { schema?: string };
      };
      return status?.schema === "default.orders";
    });
    await client.delete(PostgresSchema, KEY);
    await until(
      "it is dropped",
      async () => await client.find(PostgresSchema, KEY) === undefined,
    );
  }),
);

test(
  "The PostgreSQL example reports an unreachable database in the status",
  withExample("postgres_schema.ts", async ({ client, program }) => {
    await client.create(PostgresSchema, { metadata: { ...KEY }, spec: {} });
    await until("the message", async () => {
      const { status } = await client.get(PostgresSchema, KEY) as {
        status?: { message?: string };
      };
      return status?.message?.includes("Cannot finish the workflow");
    });
    assert.doesNotMatch(program.output, /hush/);
  }, { DATABASE_URL: "postgres://postgres:hush@127.0.0.1:1/postgres" }),
);

test("The PostgreSQL example refuses a wrong DATABASE_URL without printing it", async () => {
  for (
    const url of [
      "",
      "localhost:5432",
      "postgres://a:hush@b:port/c",
      "postgres://a:hush%zz@b/c",
    ]
  ) {
    const program = new Program("postgres_schema.ts", {
      env: { DATABASE_URL: url },
    });
    assert.equal(await program.ended(), 1, program.output);
    assert.match(program.output, /Cannot read DATABASE_URL/);
    assert.doesNotMatch(program.output, /hush/);
  }
});
