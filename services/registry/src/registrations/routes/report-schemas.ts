import { Type } from 'typebox';
import { ServiceName } from '../../http/schemas.ts';

const At = Type.Optional(Type.String({ description: 'ISO 8601; now when absent' }));
const Details = Type.Optional(
  Type.Record(Type.String({ maxLength: 256 }), Type.Unknown(), {
    description: 'Free; `version` becomes the version that runs. At most 16 KiB.',
  }),
);
const Word = Type.String({ minLength: 1, maxLength: 64 });

/** Contract 1, `/webhooks/health`. */
export const HealthBody = Type.Object({ service_name: ServiceName, status: Word, timestamp: At, details: Details });

/** Contract 1, `/webhooks/lifecycle`. */
export const LifecycleBody = Type.Object({ service_name: ServiceName, event: Word, timestamp: At, details: Details });

export const ReceivedResponse = Type.Object({ status: Type.Literal('received'), message: Type.String() });
