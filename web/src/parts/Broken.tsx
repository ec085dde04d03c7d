// A view that failed says so and offers the way on; the rest of the page stays.
import { Component, type ReactNode } from "react";

export class Broken extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <main className="empty" role="alert">
        <h2>This view could not be shown</h2>
        <p>{error.message}</p>
        <button onClick={() => location.reload()}>Load the page again</button>
      </main>
    );
  }
}
