// What a person asks of the open execution: one place, so that every button says the same when it is refused.
import { Problem, steer, type Wish } from "../api/client";
import { useLive } from "../state/live";
import { useUi } from "../state/ui";

const DONE: Partial<Record<Wish, string>> = {
  pause: "Paused at the next boundary.",
  resume: "It goes on.",
  retry: "It is tried again.",
  cancel: "It is being stopped.",
  answer: "Answered.",
  approve: "Approved.",
  reject: "Rejected, with your reason.",
  extend: "More room.",
};

/** True where it was taken. A stale wish (409) reads the newest state and says so. */
export async function act(wish: Wish, more: Record<string, unknown> = {}): Promise<boolean> {
  const { id, events, detail, refresh } = useLive.getState();
  const { toast } = useUi.getState();
  const seen = Math.max(events.at(-1)?.seq ?? 0, detail?.head ?? 0);
  try {
    const granted = await steer(id, wish, seen, more);
    toast("you", granted.given ? `${DONE[wish]} The process that runs it takes it at its next boundary.` : (DONE[wish] ?? "Done."));
    await refresh();
    return true;
  } catch (error) {
    const problem = error as Problem;
    toast("bad", problem.status === 409 ? `${problem.message}` : problem.message);
    if (problem.status === 409) await refresh();
    return false;
  }
}
