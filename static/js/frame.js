// Inside the frame: tell the host page how high the content is. Nothing else leaves the frame.
(() => {
  "use strict";
  if (window.parent === window) return;

  const tell = (message) => window.parent.postMessage(message, "*");

  new ResizeObserver(() => {
    tell({ type: "vllm-sizing:height", height: document.body.getBoundingClientRect().height });
  }).observe(document.body);

  // A new step starts at its heading: ask the host to bring the frame's top into view.
  if (document.referrer && new URL(document.referrer).origin === location.origin) {
    tell({ type: "vllm-sizing:top" });
  }
})();
