import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePorts } from '@rollcall/local/ports.ts';
import { writeSellers } from '@rollcall/local/sellers.ts';
import { writeVaultKeys } from '@rollcall/local/vault-keys.ts';
import { readVaultKeys, type VaultKey } from '@rollcall/platform/vault.ts';
import type { OwnPart } from '../../load/tasks.ts';
import { startCallers } from '../../stage/callers.ts';
import type { RollcallSubject, Stage } from '../../stage/stage.ts';
import { connectToTables, type Tables } from '../../stage/tables.ts';

const SCOPE = 'payments:write payments:read billing:write billing:read';

/** One replica of payment with the sandbox, on a database of its own. */
export interface Paying {
  readonly service: RollcallSubject;
  readonly databaseUrl: string;
  readonly tables: Tables;
  readonly keys: readonly VaultKey[];
  /** Of the notifications of the sandbox. */
  readonly secret: string;
  /** The header of a caller. @param scope of paying, reading and billing when absent. */
  callerOf(subject: string, scope?: string): Promise<Required<Pick<OwnPart, 'headers'>>>;
}

export async function startPaying(stack: AsyncDisposableStack, stage: Stage): Promise<Paying> {
  const file = (name: string): string => join(stage.directory, `payment-${name}.json`);
  const [keysPort = 0] = await freePorts(1);
  const callers = stack.use(await startCallers(keysPort));
  const databaseUrl = await stage.createDatabase('payment');
  const keysFile = await writeVaultKeys(file('keys'));
  const secret = `whsec_${randomBytes(24).toString('base64')}`;
  await writeFile(file('providers'), JSON.stringify({ default: 'sandbox', providers: { sandbox: { secret } } }));
  const service = await stage.startPayment({
    ROLLCALL_DATABASE_URL: databaseUrl,
    ROLLCALL_VAULT_KEYS_FILE: keysFile,
    ROLLCALL_PROVIDERS_FILE: file('providers'),
    ROLLCALL_SELLERS_FILE: await writeSellers(file('sellers')),
    ROLLCALL_MODE: 'trial',
    ROLLCALL_GATEWAY_KEYS_URL: callers.jwksUrl,
    ROLLCALL_PUBLIC_URL: 'https://gateway.example',
    ROLLCALL_ACCESS_LOG: 'off',
  });
  return {
    service,
    databaseUrl,
    tables: stack.use(await connectToTables(databaseUrl, 'payment')),
    keys: await readVaultKeys(keysFile),
    secret,
    async callerOf(subject, scope = SCOPE) {
      return { headers: { authorization: `Bearer ${await callers.accessTokenOf(subject, scope)}` } };
    },
  };
}

/** What each payment is for. `{name}` stands for a number. */
export const PAYMENT = {
  amount: 14_950,
  currency: 'ZAR',
  provider: 'sandbox',
  customerEmail: 'buyer-{name}@example.com',
  itemName: 'Tea, two boxes',
  metadata: { order: '{name}' },
} as const;
