python p.py --num-layers 3 --hidden-size 8 --num-attention-heads 2 --vocab-size 9 --num-experts 4 --moe-layer-freq ((((([1]*3)))))
