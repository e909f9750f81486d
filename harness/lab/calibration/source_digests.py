"""What makes a history, and what judges it: a digest of each part of the harness, by what imports what.

A calibrated trial is tried again only when what makes histories has changed; a change of the judge asks for no trial,
but for another judgement of the histories that are kept. Either part is its definitions, wherever they stand: a
function that moves, a docstring, a comment or an import changes nothing, and neither does a new name that `FORMER`
knows the old one of. (An import that takes another function of the same name would go unnoticed: let it be renamed.)
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from kafka_trial.registry import PACKAGE

MAKES = ("trial.run", "trial.environment", "trial.setup", "trial.spec", "registry")
MAKING_FOLDERS = (
    "cluster",
    "consumers",
    "history",
    "kafka_protocol",
    "nemesis",
    "witness",
    "workload",
)  # whole, plug-ins and data too
# Names of functions, classes, fields and arguments → what they were called when rows were made.
FORMER = {
    "HeartbeatRun": "Beats",
    "heartbeat_runs": "beats",
    "RESOURCES_EVERY_S": "EVERY_S",
    "offsets_records": "records",
    "FIRST_PORT": "FIRST",
    "LAST_PORT": "LAST",
    "BLOCK_PORTS": "BLOCK",
    "leave_confirmed": "leaves",
    "membership_confirmed": "keeps",
    "stay_by_logs": "stay_of",
    "stay_so_far": "waiting",
    "state_lines": "state_line",
    "make_thread_real_time": "schedule_before_others",
    "scenario_consumer_problem": "suite_problem",
    "refusals_in_words": "too_busy",
    "refused_total": "refused_ever",
    "_fetch_answers": "_answers",
    "LogPlace": "Place",
    "_proxy_of_line": "_proxy",
}
# Digests of earlier harnesses, or of a consumer on a scenario → those of today, where what differs makes no history.
SAME = {
    # Imported in circles: what a fault, an injection and their evidence are stood in other modules. Called the failure
    # of a member that had exited by other words. Not quite the same: the judge of a session warmed up when the faults
    # of its first trials began, which may have hidden what a sin does there; they are not tried again for it.
    "b8467080c529b04d": "70b347bede701a7b",
    "61db1965d45c48e3": "70b347bede701a7b",
    "9814cdd913803656": "70b347bede701a7b",  # the same, before a method of the pool went
    # stores-batches-at-hand-out: its header promises what it may show besides.
    "bc8c294eb07e85da": "a470cb0ed2d6fb4f",
    "cf87af1417ec67bb": "a470cb0ed2d6fb4f",
    # offsets-outside-transaction: the same.
    "48c2a14a1f954a92": "647c98286d41bf5d",
    # When equal definitions counted twice, and names that an import changes did not.
    "45d070d136b4df4f": "01246c81f5229995",
    # Without cuts. They are put on the proxies in trials that have one, and the others go through a Toxiproxy that is
    # built from the same modules by a main of ours. Not tried again but for a sample: that of `make test`.
    "0a5193c178920874": "01246c81f5229995",
    # Without samples of how long members and brokers wait for a processor, by which a group that is late on a machine
    # that has got busier is given more time. Tried again: the sample of `make test`.
    "5f4c6ef002638d54": "01246c81f5229995",
    # Without images, databases and payloads of teams; the sink read requests by a parser of ours, not by h11. Trials of
    # commands are the same but for that parser. Tried again: the sample of `make test`.
    "aa91ce620823b429": "01246c81f5229995",
    # Knew no faults of handlers and of the topic, no loads that end or come in runs, and only the first crash point; a
    # look at the group that was not answered counted as one at a group that is not stable, and a leader that could not
    # tell its log end yet ended the trial. Of containers the kernel was asked otherwise. Trials of suites there were
    # are made as before, where they came to their end. Tried again: the sample of `make test`.
    "c860398b2093338c": "01246c81f5229995",
    # Looked at the end of a cut before its connection had let go: the fault was without evidence then.
    "adda8457f90bbda2": "01246c81f5229995",
    # Without brokers of their own settings, heap or image where a trial asks for them, and what a fixture of pytest
    # adds to a consumer's environment; a broker that dies at a cut, and a poll interval that expires, were told by
    # other evidence. No suite has either. Tried: sins of the suites that are new, and the sample of `make test`.
    "be7a539eae386e8e": "01246c81f5229995",
    # Did not ask before a trial of an image whether containers reach its sink; a line became an event in another way.
    "97e3b4d07e24e5a2": "01246c81f5229995",
    # Waited for what was committed past and never handled as long as for everything else, not only as long as a
    # partition may stand still; waited on for a group whose members had all ended; and did not write down what a member
    # had written last where too little was handled. Tried again: the sample of `make test`.
    "b4f53eb9e21eb74b": "01246c81f5229995",
    # Called some things by other names; quoted a member that had exited before all that it wrote was read; did not look
    # for the engine where testcontainers does; kept a thread and four descriptors of each question to a cluster that
    # was still booting, until no child could be started any more. Tried again: the sample of `make test`.
    "4aac5a34278d5e62": "01246c81f5229995",
    # Had no real-time threads, so that on a busy machine one of those that listen might hear late, alone; did not tell
    # on the terminal of connections that the sink turned away, nor of steps that take longer than planned; told waits
    # of handlers in tenths of a second; and refused a sink that cannot serve a fault in the same words, elsewhere.
    # Tried again: the sample of `make test`, and all on the suite that is new.
    "b37ef0f63c18d257": "01246c81f5229995",
    # Drained by other bounds: a drain ends once nothing can change the verdict, and waits for members that are not back
    # in their group. Counted what a member with an HTTP sink said as done, not its effects alone. Took for a lost event
    # whatever held the word "error". Rolled out to members at random: trials of rolling-deploy have another table now,
    # and were not tried again. Could send no record without a value beside others, and no part of a load. The rest is
    # what a command says. Tried again: the sample of `make test`.
    "3599a007fbfcfeab": "01246c81f5229995",
    # Did not read topics that a group hands records on through, nor wait for them, nor delete them; waited for records
    # that had expired before anybody ran; could put no unreadable value into a load; asked that each of all members
    # have effects where handlers are slow or fail. No consumer of a suite has such a topic. Tried: all consumers on the
    # four suites that are new, groups that hand on, and the sample of `make test`.
    "fcaa1f018dfc3561": "01246c81f5229995",
    "69ec508b26757cce": "01246c81f5229995",
    "2b55e215c1644039": "01246c81f5229995",
    # Called intermediate topics otherwise, and took a line of a container for as late as its pipe was read. No consumer
    # of a suite is an image. Tried: the image that `init` writes, with its lines.
    "bc0f8fd87201ee90": "01246c81f5229995",
    # Did not say how many records of the opening burst each partition had, and bounded its drain by the pace of the
    # whole group alone: a drain that converges ends as before. Tried: the sample of `make test`, and what changed
    # itself.
    "8bfb02124eaf93f9": "01246c81f5229995",
    # Chose the partition that takes longest by a pace of less than a record a second, which B does not go by; and said
    # a few errors in other words.
    "dbed129737a01cda": "01246c81f5229995",
    # Did not say that a container ran out of memory where the engine had missed it. No consumer of a suite is an image.
    "39876056926bed2b": "01246c81f5229995",
    # Knew of no upgrades: brokers kept their version, a later snapshot read on, and API versions were no events.
    "e511d5fd9b9f4ac8": "01246c81f5229995",
    # Knew of no brokers that are replaced, clients that are moved, logs of brokers that are read, nor loads that
    # settle: no suite has any of these; and a static member that was back within its session lengthened a drain.
    "d94827bf43263649": "01246c81f5229995",
    "234721417ebdb307": "01246c81f5229995",
    # Looked less often whether a broker that is restarted has gone, and is in sync again.
    "6c188cb97fcb9c03": "01246c81f5229995",
    # Had no preferred replicas lead again after a roll of an upgrade: no suite has one.
    "9df6fb09bd4e0234": "01246c81f5229995",
    # Reckoned the bounds of a drain without what moved on intermediate topics. No consumer that is calibrated has one.
    "a60c698165791144": "01246c81f5229995",
    # Had up to five requests under way to a broker, and turned in circles while they were: what is sent is the same.
    # Asked for waits of threads in more time. Tried: the sample of `make test`.
    "ad62a14157bde70e": "01246c81f5229995",
    # Knew of no claim of how old a record may become, and of no neighbour.
    "4d4d1637c3540a47": "01246c81f5229995",
    # Consumers that did not post an empty body for a record without a value, or gave up at once where the sink answered
    # 503: each on a suite that has neither.
    "0068e106beea60ad": "a3b124e3baa857e3",
    "029af144c9a5d47b": "567ceb6f0d07e5ca",
    "04c2d803d1bc15f3": "2281eadd57490f70",
    "067cb93f48b813f1": "60b320e5d029acab",
    "08e9aad5e7dc26a2": "7bac5df54b840842",
    "09472ee35fcb5aa7": "434123129d789dc1",
    "098dbc1fecd23b00": "1962e913498d863c",
    "0bd4b1a19894b1ae": "80ba5957a99c1460",
    "0c03a14e107a27cf": "b4b97db2dfaf44a9",
    "0c5f767d162b61f0": "8b3cc1c9f1e67cca",
    "0c638d2df1166a8c": "6ddf2186c219cae6",
    "0ef882ba309d7fe7": "1c7594bec487f5a2",
    "0fe65bb1c55670af": "683ee5f5e4a1f518",
    "1081e03245d59603": "01d3c7f86116af13",
    "10930f67fd1b7058": "3dce8465ed0ef92a",
    "142e38d0dca415b4": "c47ccdf8098b9319",
    "16b5d81a89534d21": "8bcf08c73e42620f",
    "173287f5fb44673f": "869ae2410ab407c9",
    "17f3c70236048e5f": "c8faaa87a4312a02",
    "1941f4cc0ec12d8a": "573c614d656df548",
    "1a2eef2c5e2ef670": "9643d3bd1ecf9511",
    "1b9509e77a98e22c": "2e6e757b48711b2f",
    "1bb600120a13b9ec": "2b4a15984269bebd",
    "1c041ca978f699e9": "826b8bd65eeaa27e",
    "1e267b0f7fcb878f": "6f59f6545522dde7",
    "1e579b6ec076624f": "6f8600b3abc7a5c6",
    "1ee3274da030d0ed": "ebf5ce111cab13ff",
    "1f137f138b04b83d": "0cd89efdce5b0ae1",
    "1f7402e02367f5aa": "19fa5f8dbd54ea65",
    "1fa716b426a90062": "34304219a94c9284",
    "203eb64f88dba95d": "6c05797c19e2098e",
    "20c3b750238e4279": "8ec72c88f41c7e36",
    "20ca4871e0591997": "00049e473c5259f5",
    "212d9d59ab0996ff": "53030e775759b874",
    "21c5f2b2aeb993da": "520fa5d680db6218",
    "2287f81879dc9677": "df425ff650687e5a",
    "249181e94726c413": "6efdcc174a16354d",
    "251dec1643640cee": "4522b75db6e82e82",
    "259f81511269705e": "7ba93052b8ddd74e",
    "263909e16649138c": "155fb6a00b4c32a0",
    "267ae85c648adf12": "a4b5b726b05e7aea",
    "26b710cb7eabf0c7": "ca892cfd125999fc",
    "26d3981c40f216b2": "2752802bf93f65bd",
    "28d1e168b63999fc": "565d548acc0ff15b",
    "2a4322b425775472": "cb2d67d69018bf5f",
    "2c6f7275bfe0d56a": "c06c54858077beba",
    "2cefccf63913e08d": "d1f96e24d35fd9ca",
    "2d0adc4b57640fb8": "bd5698869ecd9722",
    "2d449b20c2f74459": "138c977f344b6feb",
    "2d6519566ae5431f": "f746312738517164",
    "2f5187cca4bb6514": "607bf34e47c765a2",
    "2f570e723233ab85": "2a5e76be1276e026",
    "2fba2be8d13e5f41": "e5a8c4893f595829",
    "30e6334251ce77ab": "e999e436930d5102",
    "31298fa9a7cb551a": "5f1b0173bc9c9409",
    "3232531a59f7b293": "148d517bcd5e677b",
    "32d57b28d0783d61": "180d3c26cd359fbc",
    "343a006003f6e2ef": "520c779de6a8e7b8",
    "347626fdc3d05f8c": "ce6e78c0e2351b22",
    "35e4cdb508572efe": "239a3dfed71626d3",
    "366f7dd404085dc3": "d3386ce0956cbcc8",
    "372cad7bcd933a0f": "955be94e79a63bdc",
    "3931c8d679558566": "25b24ab1630c08a4",
    "3e3051ef4c109527": "b05c87e75c0cf2c9",
    "3f85228199959811": "6b64c17c8f084258",
    "40ec1e24f2aab69a": "d8481370c0c81e1e",
    "44802f9a6e5d87a1": "b751717189d707c9",
    "4889eb18e981ab20": "b732ee5a713d8bbc",
    "4981bfb12d449682": "d9e4782f4f9eacbd",
    "4a8c099096126e6b": "1bb1c5fcefea0788",
    "4aa8d3241bf923bc": "c30c725c13c7049d",
    "4c4dcf91190a4aa0": "f2697cdb1ebf6b62",
    "4df02ebaf8983b07": "2115ab60dd650261",
    "4df622d23211b16b": "1d30a95c90d11cd7",
    "4e35fc721682ec75": "c6f3964d818ae6fa",
    "4ee1ace553fcd801": "742197a00d6e1397",
    "500028691316d9b5": "ddd3e0359f1c4fa9",
    "508f51ee114e0a84": "65096086f6a122ee",
    "5385ba02c3927065": "39cfab0d7b9e3488",
    "55f2217e983eb4d8": "53d41a3f2c580b73",
    "5ac14e59973d7c0c": "1eadd8f026a2833d",
    "5bd1e13708dc8b81": "900e390398c247f0",
    "5bed1306ee128bd0": "417b8dda2c12dbd8",
    "5fb286cc3a2d8ad7": "f146cd5047d87dc4",
    "600a8d30b82cc327": "223af32de8f115e2",
    "608eeed00608c0a2": "3d29c193324f2fe3",
    "618844ab9caee647": "334b88a0b5651669",
    "620b274fb88590d4": "0ab3104fcf11bac5",
    "622f10c7f8012d22": "a2a1971312c8c687",
    "63675d0f8207e7d5": "35ebdf24ce7219c7",
    "63759ff72fa534b4": "9afa15bcce9c5903",
    "63c5805daea51c65": "a4f2c5c5f98982a3",
    "68b35f6b56ad060c": "b7a2334607e867ad",
    "68d58d7f19fc6e3a": "9d776652b8d46bec",
    "68d5b3e26400c104": "4af8f9616c98152a",
    "68fc8d3fd756f900": "bb0e58b941787e50",
    "69ae332b14894622": "6861c4ff4343ceba",
    "6b1525fba557cbd3": "14e622c7cffde67b",
    "6d5e4da481928d00": "5e70664d542a6271",
    "6dd9fadd47e20865": "f188cdcaf6521e3e",
    "6de3d2a512d6b66c": "334f941cfe0a839a",
    "717c2d672b0e6967": "411506328409f1a6",
    "7195c992b90524e7": "821d2995cdb33a11",
    "7317e176cc75278a": "ebef654fdcdedfd8",
    "735fc65cebe6ba2e": "7988feb4d195c5d8",
    "760f46c0dfa8e321": "388b669d81a820f3",
    "76e0a77a19be7cb3": "fd7a21c7c0b829e3",
    "77652a410dd85db0": "e3cf47cb81fcb408",
    "791a3b8894205259": "e4ef323990493725",
    "796ae7c48912121a": "6ad683ce739b65a1",
    "7a00b3ee69109e8a": "1519821579d114db",
    "7b29018c036795db": "898cd353aaec5907",
    "7beab1edd84a374c": "0799c85c4f4d317e",
    "7c17afd52874b99f": "b1ed271ea80a8bbd",
    "7cec77fcfe33312c": "abd0623707e9d2bd",
    "7da35947914ae625": "1c6ab6d71d389009",
    "7dedbff6cb1a489e": "5cbee43cde454b99",
    "7e318e121aa9c55e": "b786e6d595994bab",
    "7f253fd44adef6f4": "1d276dacfc4e3b83",
    "8161e78f3f42f48a": "ea3d5937e132dac0",
    "817db3d56246e6ef": "16b13ecac6f24ab3",
    "836f6ebc44af8b8e": "a27ebf20832a3970",
    "856d2e32d795a7d0": "9f9962decd8c2ce1",
    "86859a98fc286aef": "1c728199ef8d19b3",
    "868899b295bcf54a": "8ea37287d8c5a33e",
    "8701a662ea52a3e7": "0a636f1df3708466",
    "8917bf9ac4003058": "eb9bcb42d92c4c9e",
    "8932cce8fc8bca9d": "fb61281a9bf2f247",
    "8a698592fff62d45": "0d914cf676a4d918",
    "8ac62f2b38fbe91f": "4e2b787a258ae3ca",
    "8bf03403a3f6a653": "72c775dd7a04f1db",
    "8f0af2dd3dcd604d": "e3fcd7d8c5bc76c4",
    "8f5478d3ace326c2": "962edb777fa640cc",
    "9006c008f5417aae": "ddf320394c562978",
    "90ab343124de316f": "279fa99918a53922",
    "9108f4b0005cfbf4": "c40bc35e17556f19",
    "919dd98bc6570b8e": "501e04b1f0bcbff3",
    "91cb4299c8918ba5": "980cdc54636753e8",
    "9298a55e9ce47437": "9ffb88225d857370",
    "93d914063d6b3e9f": "becb9004c13353bb",
    "93efdb04da8b2c5f": "6fa06c2c153c4f50",
    "943382df62b456b4": "5b627a76ee929324",
    "98c4c794ef2b3a2e": "72c62bda3b0a2424",
    "998b458864b4827f": "dc62f53a9dbeba11",
    "99b13a726dcfc391": "f19aa46c0c190d0b",
    "9e1da04183341392": "dd2b9decf6c026a5",
    "9e2eef31ef2039b6": "1e9a96130c893011",
    "9e8c631bb2876fcc": "31fbf2bbb9353be4",
    "9f977c533468cb84": "ec518a5793265a58",
    "a063492c6a666ec2": "8d6a15b6c7ffb5b1",
    "a1e299c528765edb": "3dcf756e1f1be46d",
    "a2573bfbda7c54bd": "a9cf3214efd6cf68",
    "a29b70aa2e0a1d85": "4dfdffdf4cfd0825",
    "a622645667efc34c": "753ac1ec6688db78",
    "a7d66f47ae8c970e": "3d908f1d03112467",
    "a86ed84c7f4c0437": "3b4c803c403cc45d",
    "a9a1bd2a3e22cf87": "9cbe0d994361f205",
    "a9bac9789b83bdd3": "5ce43de001ded9f7",
    "ac1b51f8e2d89809": "2df60768ae4e2786",
    "b2a19af5e7518418": "2f40ba9000c587ce",
    "b4df1a620f636f26": "2aabd65a786648e7",
    "b5af1426e7cc15da": "d24b92a2999fe000",
    "b7153693490fe920": "d224e9582a3012c1",
    "b910d039ac2db378": "72989793c1be239f",
    "b9b41f11f176983a": "2d0c822b5314ef67",
    "ba8a717027189137": "6a31ef67b741bf40",
    "bc1febbb9abd1e9f": "59b50b4bf620f8be",
    "bcb696d294c2c897": "70b054b4d65c8dad",
    "bcca239eae6e318a": "7ae666813045110d",
    "c2ca74c7c05e3624": "a1f4105727249c3f",
    "c3e45d251f778c15": "09e3a535801722ba",
    "c4e23aa2aad86dbb": "03549d2ec165ffc6",
    "c4fa0908696fb8ef": "0512a82d14dc6bab",
    "c8fe40d0a5fafc1c": "4abe60cba61ec84f",
    "c9e90db62462e648": "97beaabadfdeaa9e",
    "cdc02563797e9a54": "553cbc97388cd072",
    "ce3ca28c81d1cd68": "a43adbe25f204596",
    "ceadfb813db09bf1": "27b9ff33ec614ef4",
    "ced465a445ebaaf3": "42526776fe0028f7",
    "d00deb94cd1bded8": "c6c3b171185b66a8",
    "d23a9046a96aa796": "da00716f15b23362",
    "d2cc2829d81b54b6": "b592dc5014bef055",
    "d43cbbf99a50203c": "5cd187a8668a21d2",
    "d4b40e85df2da6a8": "f56271da986ca4b1",
    "d5d6e70b73136641": "30e73fc85504510c",
    "d5e4b78692d6f455": "90391880eb609714",
    "d6d182b3e507ba1f": "aff6c9604a635dc6",
    "d787775d2e2dbefc": "72ba123e9a7818e7",
    "d7f776bbc4e74599": "6cb44d7caf1029b3",
    "d8ff593a57b8b2a2": "0a25c1bc88f20fab",
    "dbaef756c14b9c52": "17ae81d9a075b420",
    "dbb74c9ec1549080": "56d58cbb5f11571b",
    "dbbc3a21a1881d34": "dea9cecf98aafa5c",
    "debdfb817f14f5a5": "ca7ed39853b4d71c",
    "df8180c2ee0e53fd": "15052f91f596af42",
    "dfe5318038cf06cc": "9db4b04567aa2db5",
    "e222598b96caa3d2": "65ce103fd0eacd91",
    "e6b3bd3dc54e8c5e": "fdd6f93093b711a8",
    "e77ef5d31e27b57b": "77a4f8ab4bb27be0",
    "eb921a34a2278e94": "5bdab3680bf097bf",
    "ebf334345c8c13e6": "35c89ad532c061ef",
    "ee6b8b09a1753991": "40738966c8b5199a",
    "eed70b1e622beb55": "dc25201be2530be3",
    "ef20ce278cd19a7c": "0e29ec467a8a9acc",
    "f30a50584e6ba6f6": "7e1c8e30cde0f9fb",
    "f5362c609c801e4f": "c5ec2c05786a9350",
    "f54c41a6113ee3f8": "363305a0b6eaaf73",
    "f659706bd516ac3c": "1ce7f446d93e632b",
    "f9140ccb8642cf75": "fc9dfaffaae9e09f",
    "fa5482590e7dc899": "f7ce343aa857aec1",
    "fafc2ac3a5ee78a0": "289295d2db9336d5",
    "fb63aaf7077567c9": "c44bfcfde367f22f",
    "fb97ab5940e9aa01": "80afd04aa3f4e599",
    "fc3a3df07e060713": "e7b1b59dc614be60",
    "fd9bf9c4023fff14": "1611ab8ba43981f8",
    "fdac5c745f7dea69": "be990612afa81d51",
    "fdd0a93217883878": "dee9058156948ba6",
    "ff0102ddce4e4913": "8d4f626b7845fbf0",
    # Knew no stage that adds partitions; a broker that was ended in order was given 12 s to exit, now 60, and of an
    # upgrade's steps without effect nothing was told. Trials of suites are made as before, where brokers were in time.
    "45d42b620be7532a": "01246c81f5229995",
    # Faults did not say what they do to members and brokers; now that stands in the history beside their names. What a
    # fault did is the same, and of an old history its name tells.
    "ab16d54f865336bb": "01246c81f5229995",
    # Knew of a member only whether it had given anything back, not which partitions; a broker that outlived its bound
    # was not named. Trials are made as before.
    "3df8345f39994c8d": "01246c81f5229995",
    # Unpacked stored run folders by a filter that Python 3.11.0 to 3.11.3 lack. Trials are made as before.
    "c96bb83c57cf560f": "01246c81f5229995",
    # Did not note the key of an output in a topic, and took a position in a transaction that was open or aborted for a
    # committed one. Trials are made as before, where their transactions ended; an effect of an old history has no key.
    # Who had exited by itself was written down when all members were stopped, in an upgrade too.
    "86d36fd0e3c70628": "01246c81f5229995",
    # Called some things by other names, in other modules; asked for the metadata quorum through a client library, which
    # cannot read the answers of 3.7; and an upgrade's load ended after 50,000 records. Tried again: the sample of
    # `make test`.
    "f15c354e88a785a7": "01246c81f5229995",
    # Knew one topic: a trial was of one, its load, its observer, its progress and `calibrated` too. Trials of one topic
    # are made as before. Tried again: the sample of `make test`.
    "c7e84088ae4ab7da": "01246c81f5229995",
    # Named the kind of a partition with its topic in three places, and an argument by an older name.
    "60f8080763463f2f": "01246c81f5229995",
    # The reference python-at-least-once, and what extends it, did not say that {topics} may be several.
    "00e8ccac97f058bc": "13cbeefba27b5468",
    "0927de5ff8b8da47": "1571b849e6ee240a",
    "0d839d3dff2f8b87": "54d076b394282ed3",
    "101f0159c4b76c40": "cdc7c2cec9d900a8",
    "1b07e64618a5decd": "900e390398c247f0",
    "272f9d4579b6d509": "35ebdf24ce7219c7",
    "337abc070e74fd4f": "2d0f7088228549d3",
    "39c74bea883e0f2b": "9fbb3edd578dbf4a",
    "3ca0666903b39437": "49aff742e9d0d73a",
    "4f60fce45eb8b12b": "2f006fa086f44664",
    "5dcf52d7d9c9b9f9": "40095453131658cd",
    "5f2a21707a898111": "bf529a972a016513",
    "681111ecb6a9b503": "4d96eebfd2f06db5",
    "76cbe6fc675ae386": "5df6fee380c6015f",
    "84aa50a2ce2fbda4": "28d74a1f619f76fc",
    "8562077e739f311c": "b4d427476c9ee055",
    "8911120ecd361780": "71bc399cdcdbefd4",
    "9386c86350a1ff42": "611abcdda2a6395a",
    "94255321b6e28334": "25b24ab1630c08a4",
    "a4f99edbde8725c8": "471d41cfebf9b2bc",
    "af9ee01bd20bcaed": "a08b77e1f36c5765",
    "b795d14ec85b85f5": "436c51df90f68985",
    "b8939412fb3e6f56": "8ea37287d8c5a33e",
    "b9f451233fff6425": "b05c87e75c0cf2c9",
    "bd8627a54226f774": "980cdc54636753e8",
    "c56efd070d172234": "c68277188438fe1f",
    "c5febb11beb36a88": "fbbbbd0003490a23",
    "c8990f157b947033": "84addf74e07024c3",
    "cfbb889f4a699e3a": "d248fe3fae531d93",
    "d56e1c689b6dd859": "068ff12ebe651862",
    "dae4e35d955528b6": "155fb6a00b4c32a0",
    "dda111abfa9f9cbf": "a5ff2bdec9297fba",
    "e0e5adec7b72d157": "3de3da7517c09d61",
    "e3ad7da8dbeab59d": "3fcf6a6058e27d8e",
    "e63f6481e7b37a16": "646f2dd6e53a3e7a",
    "f1f467a58ccda8c7": "90391880eb609714",
    "f2fb1eea088a7c36": "df70cee0b76bb47c",
    "fb3c8544824cad7d": "148d517bcd5e677b",
    # Took a short order for a long one where the long one before it ended just then: no trial of these had shown it.
    "0e447182a2ac6233": "54ec0edcb2125fde",
    "35323b50a020462e": "627eb9448ccbf132",
    "3b4e3c14c4e34371": "25105d1f751b232e",
    "46075ad5113b50c5": "565d548acc0ff15b",
    "488444ddfa035a33": "d8481370c0c81e1e",
    "513f3aade3dbbccc": "88360f76a2268daf",
    "5430b046051dcf16": "940731c92381c574",
    "60805a2e343fd9ef": "abd0623707e9d2bd",
    "7666751f465ad4e2": "da56eaeb1207417d",
    "915ffcb4bfc9054e": "9a528be2e61f4b05",
    "94ced198e6292ada": "1bb1c5fcefea0788",
    "9d293baeb3caf53c": "50cdf2e8dd4ba688",
    "af4b87bda7a14586": "fc31f0ed58a20fe1",
    "cf93d673b711a8e1": "f12842c352e9210a",
    "db596151812a3e36": "434123129d789dc1",
    "de18ac40f6398930": "4ff89a7e126e3028",
    "e06c54d1ebfe70da": "becb9004c13353bb",
    "e5635c1e3458bd39": "8646d78cecc90ff6",
    "f6bafef59de04175": "bd13e6d1b62ededa",
    # Did not say how old an order may become, in a file of its own; or said more of itself.
    "04e63861111c5148": "97beaabadfdeaa9e",
    "2f7defeb507bdc82": "5b627a76ee929324",
    "56d7a575de558326": "37b7ad8990c92083",
    "62149d0fddb1581b": "428fd6eb3fbe5a49",
    "80d0be867efa8e5b": "4e2b787a258ae3ca",
    "899f7670d67e81c0": "d9e4782f4f9eacbd",
    "9e3821114d169330": "b592dc5014bef055",
    "a7eb232cc250fbcf": "9a528be2e61f4b05",
    "afd68e1f5c2d3c5a": "d8cb4a801e957521",
    # Knew one cluster: a trial had no mirror, and a member was started where all are. Trials without one are made as
    # before; the processes of a member are found by another way.
    "43cc301410c353fb": "01246c81f5229995",
    # No topic came while a group was at work; a silent group on a mirror was known by what its first coordinator had
    # said. Called parts of the mirror by other names. Trials without either are made as before.
    "3533c9d6e865c36c": "01246c81f5229995",
    # Knew one group: a trial was of one, and the phases of its story were its own. A drain did not ask for the ends of
    # the logs again before it was over. Trials of one group that forwards nothing are made as before.
    "4e3ba0cec5f0e5f1": "01246c81f5229995",
    # Knew no remote tier, no payload of one topic, and no topic that is created again: trials without these are made as
    # before.
    "c425581ba933e2ef": "01246c81f5229995",
    # Knew them. Not quite the same: the step remote-reads did not go on until brokers told of a read there, and took
    # effect without one. Where the tier was to fail it was tried again; a pass of 7229d901 on remote-reads has records
    # that were there alone, and perhaps no line of a broker that says so.
    "76a77e8f98790b8c": "01246c81f5229995",
    # Asked for the local logs by a method of its own: the same question.
    "a3536d543966e10e": "01246c81f5229995",
    # Knew no way back from a mirror, no mirror of containers, and no slow remote tier. What MirrorMaker wrote when the
    # group had no member left counted as its commits. Trials without these are made as before.
    "5c60753a759ab3c9": "01246c81f5229995",
    # The legs of a mirrored history are in a module of their own; brokers' waits are read once for the trials side by
    # side; sockets, process groups and new lines are looked for with less work.
    "859b60e8dad660e9": "01246c81f5229995",
    # Told of trials side by side on one cluster how long its brokers had waited over another second than the event's:
    # that of the last reading. A trial alone on its cluster is made as before.
    "d0331a67e789ce72": "01246c81f5229995",
    # Did not say of a broker whose process stands still that it answers later what came meanwhile: the judge adds it.
    "ed698411314ee737": "01246c81f5229995",
    # What a broker that stands still does was listed where the fault is registered.
    "7c80171c4c1ed286": "01246c81f5229995",
    # Gave a step up when the broker that it asked did not listen yet.
    "c364f6a479433955": "01246c81f5229995",
    # python-async-commit did not say, in a file of its own, how much it may read of what has grown cold.
    "1f6f243bbed16cda": "6aef4c3d0cda926f",
    "7b0264b6b45a3f49": "239a3dfed71626d3",
    "7eb04d3920668513": "1080dcaf4f2631cd",
    "81d3e4c4850ea17b": "0a7fb903234925e8",
    "a6181675b6f760f7": "c8faaa87a4312a02",
    "c4289301f95670c8": "980f8c13bc639699",
    "ce79855b65a8dbe9": "b43cd3d27c383126",
    "f5affa659b8aaca7": "ddf320394c562978",
}
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
JUDGES = ("check", "trial.judge_process")
JUDGING_FOLDERS = ("anomalies", "model", "judge", "verdict")


@cache
def making_digest() -> str:
    """Returns a digest of all definitions by which a history is made, and of the data files beside them."""
    return _digest(_part(MAKES, MAKING_FOLDERS))


@cache
def judging_digest() -> str:
    """Returns a digest of all definitions by which a history is judged, and of the data files beside them."""
    return _digest(_part(JUDGES, JUDGING_FOLDERS))


@cache
def upgrading_digest() -> str:
    """Returns a digest of all definitions by which an upgrade is played and its stages are told apart."""
    return _digest(_part((), ("upgrade",)))


def _digest(files: list[Path]) -> str:
    parts: set[str] = set()
    for file in files:
        parts |= _definitions(file) if file.suffix == ".py" else {hashlib.sha256(file.read_bytes()).hexdigest()}
    return hashlib.sha256("\0".join(sorted(parts)).encode()).hexdigest()[:16]


def plain_statements(source: str | bytes) -> list[ast.stmt]:
    """Returns the statements of a module's text without docstrings and comments, by former names; of imports those that
    give something another name."""
    plain = _Plain().visit(ast.parse(source))
    return [statement for statement in plain.body if not _names_exports(statement)]


def _definitions(file: Path) -> frozenset[str]:
    """Returns the statements of a module as plain text."""
    return _as_plain_text(file.read_bytes())


@cache
def _as_plain_text(source: bytes) -> frozenset[str]:
    return frozenset(ast.unparse(statement) for statement in plain_statements(source))


def _names_exports(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__"


class _Plain(ast.NodeTransformer):
    """Leaves out what does not run differently, and calls everything by its former name."""

    def visit_Import(self, node: ast.Import) -> None:
        """An import is none of the definitions: where a name comes from may change."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom | None:
        """Neither is this one, but for the names that it changes."""
        changed = [alias for alias in node.names if alias.asname is not None]
        return ast.ImportFrom("", changed, 0) if changed else None

    def visit_If(self, node: ast.If) -> ast.AST | None:
        """What only types are taken from does not run."""
        return None if _is_for_types(node) else self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Drops the docstring, and takes the former names, of whatever has any."""
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _has_docstring(
            node
        ):
            node.body = node.body[1:]
        for name in ("id", "attr", "arg", "name"):
            if isinstance(called := getattr(node, name, None), str):
                setattr(node, name, FORMER.get(called, called))
        super().generic_visit(node)
        if isinstance(node, Documented | ast.If) and not node.body and not isinstance(node, ast.Module):
            node.body = [ast.Pass()]
        return node


def _has_docstring(node: Documented) -> bool:
    first = node.body[0] if node.body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _part(modules: tuple[str, ...], folders: tuple[str, ...]) -> list[Path]:
    """Returns all files of some folders, and all that some modules import."""
    whole = {file for name in folders for file in (PACKAGE / name).rglob("*") if _is_source(file)}
    return sorted(whole.union(_closure(modules)))


def _is_source(file: Path) -> bool:
    return file.is_file() and "__pycache__" not in file.parts


def _closure(names: tuple[str, ...]) -> list[Path]:
    """Returns the files of these modules and of all that they import, directly or not, in order."""
    waiting, found = [file for name in names if (file := _file(name))], set[Path]()
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imported(file)
    return sorted(found)


@cache
def _imported(file: Path) -> tuple[Path, ...]:
    return tuple(found for name in _named(file.read_bytes()) if (found := _file(name)) is not None)


@cache
def _named(source: bytes) -> tuple[str, ...]:
    return tuple(_imports(ast.parse(source)))


def _imports(tree: ast.AST) -> Iterator[str]:
    """Yields the modules of ours that are imported; not those that only types are taken from."""
    for node in _run(tree):
        if isinstance(node, ast.Import):
            yield from (_inner(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "kafka_trial":
            yield _inner(node.module)
            yield from (f"{_inner(node.module)}.{alias.name}".lstrip(".") for alias in node.names)


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """Yields the nodes of a module that may be executed: all but the body of `if TYPE_CHECKING`."""
    yield tree
    for child in () if _is_for_types(tree) else ast.iter_child_nodes(tree):
        yield from _run(child)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _inner(name: str) -> str:
    return name.removeprefix("kafka_trial").lstrip(".")


def _file(name: str) -> Path | None:
    place = PACKAGE.joinpath(*name.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if name and file.is_file()), None)
