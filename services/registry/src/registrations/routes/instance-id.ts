import type { FastifyRequest } from 'fastify';
import { RegistryError } from '../../common/errors.ts';

/**
 * Which instance a request is about: as its body or query says, or its header X-Instance-Id.
 *
 * @throws RegistryError INVALID_REQUEST where they contradict each other.
 */
export function instanceIdOf({ headers }: Pick<FastifyRequest, 'headers'>, given?: string): string | undefined {
  const header = headers['x-instance-id'];
  if (Array.isArray(header) || (header !== undefined && given !== undefined && header !== given)) {
    throw new RegistryError('INVALID_REQUEST', 'instance_id and X-Instance-Id must not name different instances');
  }
  return given ?? header;
}
