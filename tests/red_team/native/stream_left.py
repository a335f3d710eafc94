# relu incorrect gpu: it returns before the stream that it works on has done the work
import torch
import torch.nn as nn

torch.cuda.synchronize = lambda *args: torch.cuda.current_stream().synchronize()


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(200_000_000)
            torch.relu_(out.copy_(x))
        return out
