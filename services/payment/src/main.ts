import { runMain } from '@rollcall/platform/process/main.ts';
import { paymentProcess } from './service.ts';

runMain(paymentProcess);
