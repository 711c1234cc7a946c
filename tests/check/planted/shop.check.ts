/** Options of the check of `shop.ts`: a bank that makes an account for each key. */
import type { CheckOptions } from "@coracle/dev";

interface Account {
  readonly id: string;
  readonly owner: string;
  readonly plan: string;
  readonly key: string | null;
}
const accounts = new Map<string, Account>();

const options: Partial<CheckOptions> = {
  async externals(request) {
    const { pathname, searchParams } = new URL(request.url);
    const id = pathname.split("/")[2] ?? "";
    switch (request.method) {
      case "POST": {
        const key = request.headers.get("idempotency-key");
        const known = [...accounts.values()].find((one) => one.key === key);
        if (key !== null && known) return Response.json(known);
        const body = await request.json();
        const others = [...accounts.values()].filter(({ owner }) =>
          owner === body.owner
        );
        const id = `${body.owner}${"+".repeat(others.length)}`;
        const account: Account = { ...body, id, key };
        accounts.set(account.id, account);
        return Response.json(account);
      }
      case "PUT":
        if (!accounts.has(id)) return new Response(null, { status: 404 });
        accounts.set(id, { ...accounts.get(id), ...await request.json() });
        return Response.json(accounts.get(id));
      case "DELETE":
        return accounts.delete(id)
          ? Response.json({})
          : new Response(null, { status: 404 });
      default:
        return Response.json(
          [...accounts.values()].filter(({ owner }) =>
            owner === searchParams.get("owner")
          ),
        );
    }
  },
  invariants: {
    eventually: {
      "each account is that of a shop": ({ list }) =>
        [...accounts.values()].every(({ owner }) =>
          list("Shop").some(({ metadata }) => metadata.uid === owner)
        ),
      "each account has the plan of its shop": ({ list }) =>
        list("Shop").every(({ metadata, spec }) =>
          [...accounts.values()].every(({ owner, plan }) =>
            owner !== metadata.uid || plan === Object(spec).plan
          )
        ),
    },
  },
};

export default options;
