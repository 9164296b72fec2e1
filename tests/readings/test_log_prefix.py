"""What stands before a message: which process and which service it came from."""

import pytest

from app.readings.log_prefix import parallel_indices
from app.readings.start_log import read_start_log

_MESSAGE = "Available KV cache memory: 12.5 GiB"


@pytest.mark.parametrize(
    ("prefix", "process", "service"),
    [
        ("", "", ""),
        ("INFO 06-14 09:41:00 worker.py:267] ", "", ""),
        ("INFO 06-14 09:41:00 [gpu_worker.py:267] ", "", ""),
        ("INFO 06-14 09:41:00 [worker.py:267](http://worker.py:267/)] ", "", ""),
        ("09:41:00 [gpu_worker.py:267] ", "", ""),
        ("(EngineCore pid=107) INFO 06-14 09:41:00 [gpu_worker.py:5] ", "EngineCore", ""),
        ("(EngineCore_DP3 pid=79) INFO 06-14 09:41:00 [gpu_worker.py:5] ", "EngineCore_DP3", ""),
        ("(Worker_PP1_TP3 pid=43) INFO 06-14 09:41:00 [gpu_worker.py:5] ", "Worker_PP1_TP3", ""),
        ("(Worker pid=35) INFO 06-14 09:41:00 [gpu_worker.py:5] ", "Worker pid=35", ""),
        ("(VllmWorker rank=1 pid=10) INFO 06-14 09:41:00 [w.py:5] ", "VllmWorker rank=1", ""),
        ("(VllmWorkerProcess pid=52) INFO 06-14 09:41:00 w.py:5] ", "VllmWorkerProcess pid=52", ""),
        (
            "(RayWorkerWrapper pid=34, ip=10.1.2.3) INFO 06-14 09:41:00 [w.py:5] ",
            "RayWorkerWrapper pid=34, ip=10.1.2.3",
            "",
        ),
        ("(Worker pid=3) (Worker pid=4) (Worker_TP1 pid=5) INFO ", "Worker_TP1", ""),
        ("(ServeReplica:a:b pid=7, ip=10.1.2.3) (Worker_TP1 pid=5) INFO ", "Worker_TP1", ""),
        ("chat-1  | (Worker_TP0 pid=5) INFO ", "Worker_TP0", "chat-1"),
        ("[our vllm]       | INFO 06-14 09:41:00 [w.py:5] ", "", "our vllm"),
        ("   chat-1  | 2026-06-14T09:41:00.1Z INFO ", "", "chat-1"),
        ("2026-06-14T09:41:00.175052621Z chat-1  | INFO ", "", "chat-1"),
        ("2026-06-14 09:41:00.710 | (EngineCore pid=1) INFO ", "EngineCore", ""),
        ("INFO | module:function | ", "", ""),
        ("[pod/our-vllm-0/server] (Worker_TP0 pid=5) INFO ", "Worker_TP0", "pod/our-vllm-0/server"),
        ("Jun 14 09:41:00 node7 vllm[4000]: (Worker_TP0 pid=5) INFO ", "Worker_TP0", "vllm"),
        ("INFO  PyProcess - W-210-model-stdout: (Worker_TP0 pid=5) INFO ", "Worker_TP0", ""),
        ("  Line 118: (Worker_TP0 pid=14) INFO ", "Worker_TP0", ""),
        ("server.log:118:(Worker_TP0 pid=14) INFO ", "Worker_TP0", ""),
        ("| INFO | ", "", ""),
    ],
)
def test_a_message_is_read_behind_every_prefix(prefix: str, process: str, service: str) -> None:
    """The figure, vLLM's tag and the service's name."""
    reading = read_start_log(prefix + _MESSAGE)
    (line,) = reading.lines
    assert line.values == {"available_kv_cache_gib": 12.5}
    assert line.process == process
    assert reading.starts[0].service == service


@pytest.mark.parametrize(
    ("process", "indices"),
    [
        ("Worker_DP1_PP0_TP3_DCP1_EP7", {"DP": 1, "PP": 0, "TP": 3, "DCP": 1, "EP": 7}),
        ("EngineCore_DP2", {"DP": 2}),
        ("EngineCore_1", {"DP": 1}),
        ("EngineCore", {}),
        ("APIServer", {}),
    ],
)
def test_indices_of_a_tag(process: str, indices: dict[str, int]) -> None:
    """Each kind of parallelism that a tag names, with its index."""
    assert parallel_indices(process) == indices


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Capturing CUDA graphs (FULL): 100%|####| 35/35 [00:03<00:00]", "progress, no figure"),
        ("INFO [kv_cache_utils.py:1885] Keeping 2 draft KV layers in 1 cache group", "forks only"),
        ("INFO [core.py:1] Actual usage is ... GiB for weight", "abridged by hand"),
        ("Loading safetensors checkpoint shards: 50% Completed", "progress, no figure"),
        ("# CPU blocks: none", "no number"),
        ("INFO 06-14 09:41:00 [api_server.py:1] Available routes are:", "not about memory"),
    ],
)
def test_what_is_left_unread(line: str, reason: str) -> None:
    """Lines that are not read, each for a reason."""
    assert read_start_log(line).lines == (), reason
