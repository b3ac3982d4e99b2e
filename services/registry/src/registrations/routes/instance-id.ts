import type { FastifyRequest } from 'fastify';
import { RegistryError } from '../../common/errors.ts';
import { checkInstanceId } from '../../common/validation.ts';

/**
 * Which instance a request is about: as its body or query says, else its header X-Instance-Id.
 *
 * @throws RegistryError INVALID_INSTANCE_ID where it is not one string, and for a header that is no id,
 * needed or not.
 */
export function instanceIdOf({ headers }: Pick<FastifyRequest, 'headers'>, given?: unknown): string | undefined {
  const header = headers['x-instance-id'];
  if (typeof header === 'string') checkInstanceId(header);
  const id = given ?? header;
  if (id === undefined || typeof id === 'string') return id;
  throw new RegistryError('INVALID_INSTANCE_ID', 'instance_id must be one string');
}
