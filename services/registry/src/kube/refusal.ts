import { KubeApiError } from '@rollcall/platform/kube/errors.ts';
import { type ErrorCode, RegistryError } from '../common/errors.ts';

/** How the refusal of some fields is reported; any other field is INVALID_REQUEST. */
type CodesByField = Readonly<Record<string, ErrorCode>>;

/**
 * The domain checks what the custom resources check; this is for the day they differ. Values are
 * not repeated: they may be secrets.
 *
 * @param what was refused, where the API server names no field.
 */
export function refusal(error: unknown, what: string, codes: CodesByField = {}): RegistryError {
  const causes = error instanceof KubeApiError ? (error.status.details?.causes ?? []) : [];
  const fields = causes.flatMap(({ field }) => field ?? []);
  const field = fields.find((name) => codes[name] !== undefined) ?? fields[0];
  const code = codes[field ?? ''] ?? 'INVALID_REQUEST';
  return new RegistryError(code, `The API server refuses ${field ?? what}`, { cause: error });
}
